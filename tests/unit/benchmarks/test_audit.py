"""Which of the operator's requests count."""

from typing import Any

from benchmarks.scale.audit import counted, requests_of


def _event(verb: str, uri: str, resource: str, *, name: str = "", stage: str = "ResponseComplete") -> dict[str, Any]:
    target, _, part = resource.partition("/")
    return {
        "verb": verb,
        "requestURI": uri,
        "stage": stage,
        "objectRef": {"resource": target, "subresource": part, "name": name},
    }


PODS = "/api/v1/pods?labelSelector=tierbench.io%2Fkind"
WATCH = _event("watch", f"{PODS}&watch=true&resourceVersion=7", "pods", stage="ResponseStarted")


def test_only_a_list_that_starts_a_watch_is_a_relist() -> None:
    relist, rest = (_event("list", f"{PODS}&limit=250{page}", "pods") for page in ("", "&continue=x"))
    other = _event("list", "/api/v1/namespaces/a/pods?labelSelector=tierbench.io%2Fbenchmark%3Db", "pods")
    assert counted(requests_of([relist, rest, other, WATCH])) == {"list pods": 1}


def test_lists_of_what_is_watched_count_beyond_one_for_each_watch() -> None:
    again = _event("list", f"{PODS}&limit=250", "pods")
    assert counted(requests_of([again, WATCH, again, again])) == {"list pods": 2}


def test_the_operators_own_lease_does_not_count_and_that_of_a_node_does() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/tierbench-leases/leases"
    own = _event("update", f"{leases}/operator.tierbench.tierbench", "leases", name="operator.tierbench.tierbench")
    claims = _event("list", f"{leases}?labelSelector=tierbench.io%2Foperator%3Dtrue", "leases")
    node = _event("get", f"{leases}/node-1", "leases", name="node-1")
    assert counted(requests_of([own, claims, node])) == {"get leases": 1}


def test_a_stream_counts_once() -> None:
    log = "/api/v1/namespaces/a/pods/p/log?container=client&follow=true"
    events = [_event("get", log, "pods/log", stage=stage) for stage in ("ResponseStarted", "ResponseComplete")]
    assert counted(requests_of(events)) == {"get pods/log": 1}
