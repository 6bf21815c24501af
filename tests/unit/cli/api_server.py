"""An API server in a thread: lists, watches and gets tierbench's objects, and can fail on request."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Raw = dict[str, Any]
HANG_UP = 0
_PATHS = ("/apis/tierbench.io/v1alpha1/", "/apis/rbac.authorization.k8s.io/v1/")
_NAMESPACE = "namespaces/default/"


def plural_and_name(path: str) -> tuple[str, str]:
    for api in _PATHS:
        path = path.removeprefix(api)
    plural, _, name = path.removeprefix(_NAMESPACE).partition("/")
    return plural, name


class Store:
    """Objects by plural and name. Every change gets the next resource version and wakes all watches."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.objects: dict[tuple[str, str], Raw] = {}
        self.log: list[tuple[int, str, str, Raw]] = []
        self.version = 1
        self.fault: int | None = None
        self.watches = 0
        self.requests: list[str] = []

    def put(self, plural: str, item: Raw) -> None:
        name = item["metadata"]["name"]
        kind = "MODIFIED" if (plural, name) in self.objects else "ADDED"
        self._write(kind, plural, item)

    def delete(self, plural: str, name: str) -> None:
        self._write("DELETED", plural, self.objects[plural, name])

    def _write(self, kind: str, plural: str, item: Raw) -> None:
        with self.changed:
            self.version += 1
            stored = item | {"metadata": item["metadata"] | {"resourceVersion": str(self.version)}}
            if kind == "DELETED":
                del self.objects[plural, item["metadata"]["name"]]
            else:
                self.objects[plural, item["metadata"]["name"]] = stored
            self.log.append((self.version, kind, plural, stored))
            self.changed.notify_all()

    def fail(self, status: int | None) -> None:
        """Answers all requests, including open ones, with this status, or closes their connections with HANG_UP."""
        with self.changed:
            self.fault = status
            self.changed.notify_all()

    def end_watches(self) -> None:
        """Ends all watches as an API server does after a while."""
        with self.changed:
            self.watches += 1
            self.changed.notify_all()

    def wait_for_requests(self, text: str, count: int) -> None:
        """Until so many requests with `text` in them have come."""
        with self.changed:
            assert self.changed.wait_for(lambda: sum(text in path for path in self.requests) >= count, timeout=60)

    def came(self, path: str) -> None:
        with self.changed:
            self.requests.append(path)
            self.changed.notify_all()

    def events(self, plural: str, after: int) -> Iterator[Raw]:
        with self.changed:
            generation = self.watches
            while self.fault is None and self.watches == generation:
                for version, kind, where, item in [entry for entry in self.log if entry[0] > after]:
                    after = version
                    if where == plural:
                        yield {"type": kind, "object": item}
                self.changed.wait(timeout=60)


class Handler(BaseHTTPRequestHandler):
    store: Store
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.store.came(self.path)
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        plural, name = plural_and_name(url.path)
        if self.store.fault == HANG_UP:
            self.close_connection = True
        elif self.store.fault is not None:
            self._answer(self.store.fault, {"kind": "Status", "reason": "Fault"})
        elif query.get("watch"):
            self._watch(plural, int(query["resourceVersion"]))
        elif name:
            item = self.store.objects.get((plural, name))
            self._answer(200 if item else 404, item or {"kind": "Status", "reason": "NotFound"})
        else:
            items = [item for (where, _), item in self.store.objects.items() if where == plural]
            self._answer(200, {"metadata": {"resourceVersion": str(self.store.version)}, "items": items})

    def do_PATCH(self) -> None:
        self.store.came(f"PATCH {self.path}")
        plural, name = plural_and_name(urlsplit(self.path).path)
        change = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.store.fault == HANG_UP:
            self.close_connection = True
            return
        if self.store.fault is not None:
            self._answer(self.store.fault, {"kind": "Status", "reason": "Fault"})
            return
        item = self.store.objects[plural, name]
        policy = item["spec"].get("runPolicy", {}) | change["spec"]["runPolicy"]
        self.store.put(plural, item | {"spec": item["spec"] | {"runPolicy": policy}})
        self._answer(200, item)

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self, plural: str, after: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in self.store.events(plural, after):
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that the base class gives)
        pass


@contextmanager
def api_server(directory: Path) -> Iterator[tuple[Store, str]]:
    """The store behind the server, and the path of a kubeconfig for it."""
    store = Store()
    handler = type("BoundHandler", (Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "users": [{"name": "u", "user": {}}],
            }
        )
    )
    try:
        yield store, str(kubeconfig)
    finally:
        store.fail(503)
        server.shutdown()
        server.server_close()
        thread.join()
