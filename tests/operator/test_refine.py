"""A refinement measures where another class takes the lead, on servers that have the files for it."""

from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl
from tests.operator.site import Site


def test_refinement_measures_the_middle_of_a_crossover(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    with site.crossover(running):
        kubectl.apply(
            file_transfer(
                servers={"nodeClassNames": ["cloud", "jetson-nano"]},
                fileSizes=["64Mi", "512Mi"],
                access="NodePort",
                repetitions=3,
                warmupTrials=2,
                runPolicy={"refine": {"withinPercent": 300}},
            )
        )
        status = running.wait_for_phase("Complete", seconds=900)
    assert_every_trial_once(running, 3)
    assert_nothing_left(running)

    assert [item["levels"]["fileSize"] for item in status["run"]["refinements"]] == ["181Mi"]
    assert status["progress"] == "6/6"
    assert [result["spec"]["case"] for result in running.results] == [1, 2, 3, 4, 5, 6]
    for result in running.results[4:]:
        assert result["spec"]["levels"]["fileSize"] == "181Mi"
        assert result["spec"]["alternation"]["cases"] == [5, 6]
        assert all(trial["transfer"]["bytes"] == 181 * 2**20 for trial in result["status"]["trials"])
    running.wait_for_description("cloud overtakes jetson-nano between 64Mi and 512Mi: measures 181Mi")
