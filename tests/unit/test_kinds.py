"""A kind of benchmark is one folder and one line in `kinds/registry.py`. One that is registered here is measured, read,
exported and reported like the others."""

from importlib import import_module

import pytest

from tests.unit.domain.objects import START
from tests.unit.domain.world import World
from tests.unit.kinds.echo import EchoBenchmark
from tests.unit.report.published import measured
from tierbench.advice.advise import advise
from tierbench.advice.tables import runs
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.record import BenchmarkReference, RecordStatus
from tierbench.generate.schemas import crd_yaml
from tierbench.kinds.registry import BENCHMARKS, MODULES, kind_of, kinds
from tierbench.metrics.results import render, result_samples
from tierbench.report.page import render as page
from tierbench.report.tables import trial_headings, trial_rows
from tierbench.results.aggregate import fail
from tierbench.results.published import quantity_columns
from tierbench.results.quantities import main_quantity
from tierbench.results.units import show_levels, title


def test_a_kind_is_registered_by_its_name() -> None:
    assert [kind.model.KIND.kind for kind in kinds()] == list(MODULES)


def test_each_kind_has_its_own_prefix_of_names() -> None:
    assert len({model.PREFIX for model in BENCHMARKS.values()}) == len(BENCHMARKS)


def test_exactly_one_kind_measures_preflights() -> None:
    assert len([kind for kind in kinds() if kind.probe is not None]) == 1


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_kind_uses_only_quantities_that_its_trials_can_have(kind: str) -> None:
    measures = kind_of(kind).measures
    available = measures.quantities(measures.everything)
    assert {*measures.main, *measures.time, measures.rate, *measures.times, *measures.times.values()} <= set(available)


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_a_kind_has_a_dashboard(kind: str) -> None:
    assert import_module(kind_of(kind).dashboard).dashboard()


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "EchoBenchmark", "tests.unit.kinds.echo")


@pytest.mark.usefixtures("echo")
def test_registered_kind_works_like_the_others() -> None:
    body = {
        "metadata": {"name": "demo", "namespace": "default", "uid": "uid-1", "generation": 1},
        "spec": {
            "servers": {"nodeClassNames": ["cloud", "jetson"]},
            "clients": {"nodeClassNames": ["user"]},
            "sizes": [1, 64],
            "repetitions": 2,
        },
    }
    echo_world = World(EchoBenchmark.model_validate(body))
    echo_world.run()
    assert echo_world.benchmark.status.phase == "Complete"
    results = [result for _, result in sorted(echo_world.results.items())]
    assert [result.metadata.name for result in results] == [f"eb-demo-r1-c00{number}" for number in (1, 2, 3, 4)]
    assert [result.status.display.mean for result in results] == 4 * ["1.00 s"]
    text = "".join(render([result_samples(result) for result in results]))
    assert text.count("tierbench_echo_seconds{") == 4
    assert 'size="64"} 1.0' in text
    (run,) = runs(results)
    assert "Echo" in trial_headings(run)
    assert all("1000000000 ns" in row.cells for row in trial_rows(run))
    assert len(trial_rows(run)) == 8
    assert "Time of an echo" in page((run,), {})
    status = advise(PlacementAdviceSpec(client_class_name="user"), results, echo_world.now)
    assert status.quantity == "echoesPerSecond"
    assert "kind: EchoBenchmark" in crd_yaml(EchoBenchmark)
    assert title("echoNanoseconds") == "Time of an echo"
    assert show_levels({"size": "64"}) == "64"
    assert "echoSeconds" in quantity_columns("EchoBenchmark")


def test_a_kind_that_is_not_registered_is_unknown() -> None:
    assert "EchoBenchmark" not in BENCHMARKS
    with pytest.raises(KeyError, match="EchoBenchmark"):
        kind_of("EchoBenchmark")


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_report_of_a_failed_run_names_the_main_quantity(kind: str) -> None:
    result = measured("cloud", "1M", [(1.0, 0)])
    spec = result.spec.model_copy(update={"benchmark": BenchmarkReference(kind=kind, name="demo")})
    failed = fail(spec, RecordStatus(), START, "NoReadyNode", "none")
    html = page(runs([result.model_copy(update={"spec": spec, "status": failed})]), {})
    assert f"<caption>{title(main_quantity(kind, ()))}, mean" in html
