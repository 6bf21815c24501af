"""Runs etcd, API server, controller manager, scheduler and DNS on the control plane's machine."""

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import certificates
from tests.cluster.addresses import FIRST_SERVICE, SERVICES, Addresses
from tests.cluster.machine import Machine

API = ("etcd", "apiserver")
DAEMONS = (*API, "controller-manager", "scheduler", "coredns")
NOT_READY_AFTER_SECONDS = 20

_ETCD = "http://127.0.0.1:2379"
_PEERS = "http://127.0.0.1:2380"
_USERS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
    "coredns": ("system:coredns", ""),
    "router": ("kube-router", "system:masters"),
}


@dataclass(frozen=True)
class ControlPlane:
    """The control plane. `folder` has its certificates, kubeconfigs and data. `binaries` has its programs."""

    machine: Machine
    folder: Path
    binaries: Path
    addresses: Addresses

    @property
    def server(self) -> str:
        return f"https://{self.addresses.control_plane}:6443"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user}.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Returns the file in which the API server logs audited requests, one event per line."""
        return self.folder / "audit.log"

    @property
    def _audit_policy(self) -> Path:
        return self.folder / "audit.json"

    def prepare(self, nodes: list[str]) -> None:
        """Creates the certificates, and an account (a token and a kubeconfig) per component and node."""
        certificates.make(self.folder / "pki", self.addresses.control_plane, FIRST_SERVICE)
        users = _USERS | {name: (f"system:node:{name}", "system:nodes") for name in nodes}
        lines = []
        for name, (user, group) in users.items():
            token = secrets.token_hex(16)
            lines.append(f'{token},{user},{name},"{group}"\n')
            self.kubeconfig(name).write_text(self._kubeconfig(token))
            self.kubeconfig(name).chmod(0o600)
        (self.folder / "tokens.csv").write_text("".join(lines))
        (self.folder / "Corefile").write_text(
            f".:53 {{\n  bind {self.addresses.control_plane}\n  kubernetes cluster.local in-addr.arpa {{\n"
            f"    kubeconfig {self.kubeconfig('coredns')}\n    ttl 5\n  }}\n}}\n"
        )

    def audit(self, user: str) -> None:
        """Makes the API server log this user's requests from its next start."""
        rules = [{"level": "Metadata", "users": [user]}, {"level": "None"}]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
        self._audit_policy.write_text(json.dumps(policy))

    def start(self, daemon: str) -> None:
        """Starts one of DAEMONS unless it runs."""
        self.machine.start(daemon, *self._command(daemon))

    def _command(self, daemon: str) -> list[str]:
        pki, own = self.folder / "pki", f"--kubeconfig={self.kubeconfig(daemon)}"
        if daemon == "etcd":
            addresses = [
                f"--listen-client-urls={_ETCD}",
                f"--advertise-client-urls={_ETCD}",
                f"--listen-peer-urls={_PEERS}",
            ]
            return [f"{self.binaries}/etcd", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", *addresses]
        if daemon == "apiserver":
            audit = [f"--audit-policy-file={self._audit_policy}", f"--audit-log-path={self.audit_log}"]
            return [
                f"{self.binaries}/kube-apiserver",
                f"--etcd-servers={_ETCD}",
                f"--advertise-address={self.addresses.control_plane}",
                f"--tls-cert-file={pki}/apiserver.crt",
                f"--tls-private-key-file={pki}/apiserver.key",
                f"--client-ca-file={pki}/ca.crt",
                f"--kubelet-client-certificate={pki}/kubelet-client.crt",
                f"--kubelet-client-key={pki}/kubelet-client.key",
                "--kubelet-preferred-address-types=InternalIP",
                f"--token-auth-file={self.folder}/tokens.csv",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                f"--service-cluster-ip-range={SERVICES}",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={pki}/sa.pub",
                f"--service-account-signing-key-file={pki}/sa.key",
                *(audit if self._audit_policy.exists() else ()),
            ]
        if daemon == "controller-manager":
            return [
                f"{self.binaries}/kube-controller-manager",
                own,
                "--leader-elect=false",
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={pki}/sa.key",
                f"--root-ca-file={pki}/ca.crt",
                f"--cluster-signing-cert-file={pki}/ca.crt",
                f"--cluster-signing-key-file={pki}/ca.key",
                "--node-monitor-period=2s",
                f"--node-monitor-grace-period={NOT_READY_AFTER_SECONDS}s",
                f"--flex-volume-plugin-dir={self.folder}/flexvolume",
                "--secure-port=0",
            ]
        if daemon == "scheduler":
            return [f"{self.binaries}/kube-scheduler", own, "--leader-elect=false", "--secure-port=0"]
        return [f"{self.binaries}/coredns", "-conf", f"{self.folder}/Corefile"]

    def _kubeconfig(self, token: str) -> str:
        authority = base64.b64encode((self.folder / "pki" / "ca.crt").read_bytes()).decode()
        name = self.machine.cluster
        return (
            "apiVersion: v1\nkind: Config\n"
            f"clusters: [{{name: {name}, cluster: "
            f"{{server: '{self.server}', certificate-authority-data: {authority}}}}}]\n"
            f"users: [{{name: {name}, user: {{token: {token}}}}}]\n"
            f"contexts: [{{name: {name}, context: {{cluster: {name}, user: {name}}}}}]\n"
            f"current-context: {name}\n"
        )
