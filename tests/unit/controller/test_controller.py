"""Settings, wake-ups and the queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierbench.api.policy import Policy, Quotas
from tierbench.controller.logs import LogFormat
from tierbench.controller.settings import Settings, SettingsError
from tierbench.controller.wakeups import Queue, Wakeups
from tierbench.domain.observed import QueueBlocker
from tierbench.domain.results import BenchmarkKey as Key

ENVIRONMENT = {
    "TIERBENCH_RELEASE": "bench/tierbench",
    "TIERBENCH_LEASE_NAMESPACE": "leases",
    "TIERBENCH_CLIENT_IMAGE": "client:1",
    "TIERBENCH_NGINX_IMAGE": "nginx:1",
    "TIERBENCH_MOSQUITTO_IMAGE": "mosquitto:1",
    "TIERBENCH_KAFKA_IMAGE": "kafka:1",
    "TIERBENCH_PAHO_IMAGE": "paho:1",
    "TIERBENCH_NETWORK_IMAGE": "network:1",
    "TIERBENCH_WATCH_NAMESPACES": "a, b",
}
A, B, C = (("FileTransferBenchmark", "ns", name) for name in "abc")


def test_settings() -> None:
    settings = Settings.from_environment(ENVIRONMENT)
    assert settings.watch_namespaces == ("a", "b")
    assert (settings.images.client, settings.images.programs["nginx"]) == ("client:1", "nginx:1")
    assert (settings.log_level, settings.log_format) == ("INFO", LogFormat.TEXT)


def test_images_that_may_be_asked_for() -> None:
    text = '{"nginx": {"1.19.6": "nginx:1.19.6"}, "kafka": {}}'
    images = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_ALTERNATIVES": text}).images
    assert [images.of("nginx", name) for name in ("default", "1.19.6", "1.18")] == ["nginx:1", "nginx:1.19.6", ""]
    assert images.of("mosquitto", "1.19.6") == ""
    with pytest.raises(SettingsError, match="write images as in"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_ALTERNATIVES": '{"nginx": "nginx:1"}'})


def test_pull_policies() -> None:
    text = '{"nginx:1": "Always"}'
    images = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_PULL_POLICIES": text}).images
    assert images.pulled("nginx:1") == {"image": "nginx:1", "imagePullPolicy": "Always"}
    assert images.pulled("kafka:1") == {"image": "kafka:1"}
    with pytest.raises(SettingsError, match="write policies as in"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_IMAGE_PULL_POLICIES": "Always"})


def test_limits() -> None:
    assert Settings.from_environment(ENVIRONMENT).quotas == Quotas()
    given = Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": '{"cases": 5, "freeDisk": "1Gi"}'}).quotas
    assert (given.cases, given.free_bytes, given.history) == (5, 2**30, 50)
    for text, says in (
        ('{"case": 5}', "case: Extra"),
        ('{"cases": 0}', "cases: "),
        ("null", "TIERBENCH_LIMITS, of the chart's values: limits: "),
    ):
        with pytest.raises(SettingsError, match=says):
            Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LIMITS": text})


def test_what_benchmarks_may_ask_for() -> None:
    given = {**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "10.96.0.1", "TIERBENCH_POLICY": '{"hostPaths": ["/srv"]}'}
    policy = Settings.from_environment(given).policy
    assert policy == Policy(host_paths=("/srv",)).refusing("10.96.0.1")
    assert Settings.from_environment(ENVIRONMENT).policy == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"hostPath": []}', "hostPath: Extra inputs are not permitted"),
        ('{"hostPaths": ["/"]}', "hostPaths.0: String should match pattern"),
        ('{"refusedNetworks": ["10.0.0.1/8"]}', "refusedNetworks.0: Value error, 10.0.0.1/8 has host bits set"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"TIERBENCH_POLICY, of the chart's values: policy.{message}"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_POLICY": text})


def test_the_user_of_workloads_may_be_left_to_the_platform() -> None:
    def user(text: str) -> int | None:
        return Settings.from_environment({**ENVIRONMENT, "TIERBENCH_WORKLOADS_USER": text}).images.user

    assert (user("1000660000"), user("")) == (1000660000, None)
    for wrong in ("0", "root", "-1"):
        with pytest.raises(SettingsError, match="write a user id"):
            user(wrong)


@pytest.mark.parametrize(
    "name", ["TIERBENCH_LEASE_NAMESPACE", "TIERBENCH_CLIENT_IMAGE", "TIERBENCH_NGINX_IMAGE", "TIERBENCH_PAHO_IMAGE"]
)
def test_a_missing_setting_is_named(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_environment({key: value for key, value in ENVIRONMENT.items() if key != name})


def test_a_port_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="write a port number"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_HTTP_PORT": "http"})


def test_a_log_format_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="TIERBENCH_LOG_FORMAT is 'xml': write text or json"):
        Settings.from_environment({**ENVIRONMENT, "TIERBENCH_LOG_FORMAT": "xml"})


def test_the_oldest_goes_first_among_those_that_want_the_same_node() -> None:
    queue = Queue()
    assert queue.wait(B, "2026-01-02T00:00:00Z", ["n1", "n2"]) == (B,)
    assert queue.wait(A, "2026-01-01T00:00:00Z", ["n2"]) == (A, B), "it comes before one that waits already"
    assert queue.wait(C, "2026-01-03T00:00:00Z", ["n3"]) == (C,)
    assert queue.wait(C, "2026-01-03T00:00:00Z", ["n3"]) == ()
    assert queue.ahead(A) is None
    assert queue.ahead(B) == QueueBlocker("ns/a", frozenset({"n2"}))
    assert queue.ahead(C) is None
    assert set(queue.first()) == {A, B, C}
    assert queue.leave(A) == (B,)
    assert queue.leave(A) == ()
    assert queue.ahead(B) is None
    assert len(queue) == 2


KEYS = st.sampled_from([("FileTransferBenchmark", "ns", name) for name in "abcdefgh"])
WANTED = st.sets(st.sampled_from(["n1", "n2", "n3"]), min_size=1)


@given(st.lists(st.tuples(KEYS, st.integers(1, 9), st.none() | WANTED)))
def test_whoever_has_another_before_it_than_it_was_told_is_rung(steps: list[tuple[Key, int, set[str] | None]]) -> None:
    """So that a thousand may wait and none need look by itself."""
    queue, waiting, told = Queue(), dict[Key, tuple[str, Key, set[str]]](), dict[Key, str | None]()
    for key, day, wanted in steps:
        if wanted is None:
            waiting.pop(key, None)
            rung = queue.leave(key)
        else:
            waiting[key] = (f"2026-01-0{day}", key, wanted)
            rung = queue.wait(key, f"2026-01-0{day}", wanted)
        told |= {one: _before(waiting, one) for one in rung}
        told = {one: who for one, who in told.items() if one in waiting}
        assert told == {one: _before(waiting, one) for one in waiting}
        assert told == {one: None if (ahead := queue.ahead(one)) is None else ahead.benchmark for one in waiting}
        heads = {one for one in waiting if any(_first(waiting, item) == one for item in waiting[one][2])}
        assert set(queue.first()) == heads


def _before(waiting: dict[Key, tuple[str, Key, set[str]]], key: Key) -> str | None:
    mine = waiting.get(key)
    older = [place[:2] for place in waiting.values() if mine and place[:2] < mine[:2] and place[2] & mine[2]]
    return "/".join(max(older)[1][1:]) if older else None


def _first(waiting: dict[Key, tuple[str, Key, set[str]]], item: str) -> Key:
    return min(place[:2] for place in waiting.values() if item in place[2])[1]


def test_a_bell_wakes_its_loop_alone() -> None:
    wakeups = Wakeups()
    one, other = wakeups.bell(A), wakeups.bell(B)
    wakeups.ring(A)
    wakeups.ring(C)
    assert one.is_set()
    assert not other.is_set()
    wakeups.ring_all()
    assert other.is_set()


def test_nodes_wake_those_to_whom_they_matter() -> None:
    wakeups = Wakeups()
    bells = [wakeups.bell(key) for key in (A, B, C)]
    wakeups.ask(A, frozenset({"n1"}))
    wakeups.ask(B, None)
    wakeups.ring_for(["n1", "n9"])
    assert [bell.is_set() for bell in bells] == [True, True, False]
