"""`join` invites machines to external classes, and removes them."""

import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tierbench.api.node_class import NODE_CLASSES
from tierbench.cli.main import main
from tierbench.kube.client import ApiError

Capture = pytest.CaptureFixture[str]
COLLECTOR = {"url": "https://192.0.2.7:30443", "pin": "sha256//x"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[ApiServer, str]]:
    api = ApiServer()
    put(api)
    api.put(NODE_CLASSES, {"metadata": {"name": "cloud"}, "spec": {"nodeSelector": {"matchLabels": {"a": "b"}}}})
    with serve_in_thread(api, tmp_path) as kubeconfig:
        yield api, kubeconfig


def put(api: ApiServer, *invitations: dict[str, Any], **status: Any) -> None:
    spec = {"external": True, "invitations": list(invitations)}
    found = {"collector": COLLECTOR, **status}
    api.put(NODE_CLASSES, {"metadata": {"name": "laptop", "uid": "u"}, "spec": spec, "status": found})


def invitation(name: str, until: str = "2999-01-01T00:00:00Z") -> dict[str, Any]:
    return {"name": name, "tokenHash": "ab" * 32, "expirationTime": until}


def invited(api: ApiServer) -> list[dict[str, Any]]:
    raw = api.get(NODE_CLASSES, "laptop")
    assert raw is not None
    found: list[dict[str, Any]] = raw["spec"].get("invitations", [])
    return found


def test_join_prints_one_command_and_stores_only_the_hash_of_its_token(
    server: tuple[ApiServer, str], capsys: Capture
) -> None:
    api, kubeconfig = server
    assert main(["join", "laptop", "--expires", "30m", "--kubeconfig", kubeconfig]) == 0
    out, errors = capsys.readouterr()
    (line,) = out.splitlines()
    words = shlex.split(line)
    assert words[:3] == ["tierbench-client", "join", "https://192.0.2.7:30443"]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    assert (given["--class"], given["--pin"]) == ("laptop", "sha256//x")
    (one,) = invited(api)
    assert (one["name"], one["tokenHash"]) == ("laptop-1", hashlib.sha256(given["--token"].encode()).hexdigest())
    assert "within 30m" in errors
    assert given["--token"] not in str(api.objects)


def test_each_machine_gets_a_name_and_unused_expired_invitations_are_removed(
    server: tuple[ApiServer, str], capsys: Capture
) -> None:
    api, kubeconfig = server
    joined = {"name": "laptop-1", "ready": True, "architecture": "arm64", "key": "ab" * 16}
    joined["lastSeenTime"] = "2000-01-01T00:00:00Z"
    put(api, invitation("laptop-1", "2000-01-01T00:00:00Z"), invitation("b", "2000-01-01T00:00:00Z"), members=[joined])
    assert main(["join", "laptop", "--collector", "gate:443", "--kubeconfig", kubeconfig]) == 0
    assert [one["name"] for one in invited(api)] == ["laptop-1", "laptop-2"]
    assert "https://gate:443" in capsys.readouterr().out
    assert main(["join", "laptop", "--name", "laptop-2", "--kubeconfig", kubeconfig]) == 2
    assert "--remove laptop-2" in capsys.readouterr().err
    assert main(["join", "laptop", "--remove", "laptop-1", "--kubeconfig", kubeconfig]) == 0
    assert [one["name"] for one in invited(api)] == ["laptop-2"]
    assert main(["join", "laptop", "--remove", "laptop-1", "--kubeconfig", kubeconfig]) == 2
    assert "it has these: laptop-2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("missing", {}, "there is no node class missing"),
        ("cloud", {}, "NodeClass cloud consists of nodes"),
        ("laptop", {"collector": None}, "collector.enabled"),
        ("laptop", {"collector": {**COLLECTOR, "url": "https://t.n.svc:8443"}}, "collector.address"),
    ],
)
def test_the_message_names_what_is_missing(
    server: tuple[ApiServer, str], capsys: Capture, name: str, status: dict[str, Any], words: str
) -> None:
    api, kubeconfig = server
    put(api, **status)
    assert main(["join", name, "--kubeconfig", kubeconfig]) == 2
    out, errors = capsys.readouterr()
    assert words in errors
    assert not out
    assert not invited(api)


def test_user_who_may_not_change_classes_cannot_invite_machines(server: tuple[ApiServer, str], capsys: Capture) -> None:
    api, kubeconfig = server
    api.refuse["PATCH", "/laptop"] = ApiError(403, "Forbidden", "no")
    assert main(["join", "laptop", "--kubeconfig", kubeconfig]) == 2
    out, errors = capsys.readouterr()
    assert "may not" in errors
    assert not out
