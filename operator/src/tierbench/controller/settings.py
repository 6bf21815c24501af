"""The operator's settings: environment variables that the chart sets."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from socket import gethostname
from typing import Final, Self, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from tierbench.api.policy import Policy, Quotas
from tierbench.controller.logs import LogFormat
from tierbench.kinds.registry import kinds
from tierbench.workloads.workload import Images

_Values = TypeVar("_Values", bound=BaseModel)
_ALTERNATIVES: Final = TypeAdapter(dict[str, dict[str, str]])
_PULL_POLICIES: Final = TypeAdapter(dict[str, str])


class SettingsError(Exception):
    """A setting is missing or invalid."""


@dataclass(frozen=True)
class Settings:
    """The settings of one operator."""

    release: str
    """The release as namespace/name. Each release has one leader."""
    pod: str
    """The name of this pod, or a unique name outside of a pod."""
    watch_namespaces: tuple[str, ...]
    """The namespaces to watch. None means all."""
    lease_namespace: str
    """The namespace of the Leases, the same for all releases."""
    images: Images
    """The images of clients and servers, and the priority of their pods."""
    policy: Policy
    """What benchmarks may use."""
    quotas: Quotas
    """The limits of a benchmark, and of all together."""
    http_port: int
    """The port of /metrics, /healthz and /readyz."""
    probe_port: int | None
    """A port of /healthz and /readyz for the kubelet alone, so that others cannot take its connections."""
    metrics_authorization: bool
    """Whether only users whom the API server authorizes may get /metrics."""
    collector_secret: str
    """The Secret with the key of the collector, or nothing without a collector."""
    collector_port: int
    """The port where clients push their lines."""
    isolated: bool
    """Whether NetworkPolicies isolate the pods of benchmarks."""
    log_level: str
    """The lowest level that is logged: DEBUG, INFO, WARNING or ERROR."""
    log_format: LogFormat
    """The format of log entries."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Reads TIERBENCH_… variables. Raises SettingsError."""

        def words(name: str) -> tuple[str, ...]:
            return tuple(word.strip() for word in environment.get(name, "").split(",") if word.strip())

        def needed(name: str) -> str:
            value = environment.get(name, "").strip()
            if not value:
                raise SettingsError(f"{name} is not set: the chart sets it; by hand, export it before the start")
            return value

        probes = environment.get("TIERBENCH_PROBE_PORT", "")
        return cls(
            release=needed("TIERBENCH_RELEASE"),
            pod=environment.get("POD_NAME") or f"{gethostname()}-{token_hex(4)}",
            watch_namespaces=words("TIERBENCH_WATCH_NAMESPACES"),
            lease_namespace=needed("TIERBENCH_LEASE_NAMESPACE"),
            images=Images(
                client=needed("TIERBENCH_CLIENT_IMAGE"),
                programs={name: needed(f"TIERBENCH_{name.upper()}_IMAGE") for kind in kinds() for name in kind.images},
                pull_secrets=words("TIERBENCH_IMAGE_PULL_SECRETS"),
                pull_policies=_pull_policies(environment.get("TIERBENCH_IMAGE_PULL_POLICIES", "{}")),
                user=_user(environment.get("TIERBENCH_WORKLOADS_USER", "")),
                alternatives=_alternatives(environment.get("TIERBENCH_IMAGE_ALTERNATIVES", "{}")),
                priority_class=environment.get("TIERBENCH_PRIORITY_CLASS", ""),
                collector=environment.get("TIERBENCH_COLLECTOR_URL", ""),
            ),
            policy=_policy(environment),
            quotas=_values(Quotas, "limits", environment),
            http_port=_port("TIERBENCH_HTTP_PORT", environment.get("TIERBENCH_HTTP_PORT", "8080")),
            probe_port=_port("TIERBENCH_PROBE_PORT", probes) if probes else None,
            metrics_authorization=environment.get("TIERBENCH_METRICS_AUTHORIZATION") == "true",
            collector_secret=environment.get("TIERBENCH_COLLECTOR_SECRET", ""),
            collector_port=_port("TIERBENCH_COLLECTOR_PORT", environment.get("TIERBENCH_COLLECTOR_PORT", "8443")),
            isolated=environment.get("TIERBENCH_NETWORK_POLICIES") == "true",
            log_level=environment.get("TIERBENCH_LOG_LEVEL", "info").upper(),
            log_format=_log_format(environment.get("TIERBENCH_LOG_FORMAT", LogFormat.TEXT)),
        )


def _port(name: str, text: str) -> int:
    if not text.isdecimal():
        raise SettingsError(f"{name} is {text!r}: write a port number, for example 8080")
    return int(text)


def _log_format(text: str) -> LogFormat:
    try:
        return LogFormat(text)
    except ValueError:
        raise SettingsError(f"TIERBENCH_LOG_FORMAT is {text!r}: write {' or '.join(LogFormat)}") from None


def _user(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or text == "0":
        raise SettingsError(f"TIERBENCH_WORKLOADS_USER is {text!r}: write a user id, for example 65530, or nothing")
    return int(text)


def _alternatives(text: str) -> dict[str, dict[str, str]]:
    try:
        return _ALTERNATIVES.validate_json(text)
    except ValidationError as error:
        example = '{"nginx": {"1.19.6": "docker.io/library/nginx:1.19.6"}}'
        raise SettingsError(f"TIERBENCH_IMAGE_ALTERNATIVES is {text!r}: write images as in {example}") from error


def _pull_policies(text: str) -> dict[str, str]:
    try:
        return _PULL_POLICIES.validate_json(text)
    except ValidationError as error:
        example = '{"docker.io/library/nginx:1.29": "Always"}'
        raise SettingsError(f"TIERBENCH_IMAGE_PULL_POLICIES is {text!r}: write policies as in {example}") from error


def _policy(environment: Mapping[str, str]) -> Policy:
    policy, api_server = _values(Policy, "policy", environment), environment.get("KUBERNETES_SERVICE_HOST", "")
    return policy.with_refused_host(api_server) if api_server else policy


def _values(model: type[_Values], name: str, environment: Mapping[str, str]) -> _Values:
    """Parses a part of the chart's values, which the chart passes as JSON."""
    variable = f"TIERBENCH_{name.upper()}"
    try:
        return model.model_validate_json(environment.get(variable, "{}"))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, (name, *first["loc"])))
        raise SettingsError(f"{variable}, of the chart's values: {where}: {first['msg']}") from error
