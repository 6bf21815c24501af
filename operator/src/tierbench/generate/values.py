"""The model of the chart's values."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tierbench.api.model import IMAGE_NAME_PATTERN, LONGEST_IMAGE_NAME, OWN_IMAGE
from tierbench.api.policy import Policy, Quotas
from tierbench.api.schema import Schema
from tierbench.controller.logs import LogFormat

_NAMESPACE_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_WRITE_AN_IMAGE: Final = (
    "an object, as in {repository: registry.example/NAME, tag: VERSION}; where an older chart is upgraded, "
    "use --reset-then-reuse-values in place of --reuse-values, and write {} to forget its image"
)

Registry = Annotated[str, Field(max_length=512, pattern=r"^\S*$")]
Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=_NAMESPACE_PATTERN)]
Name = Annotated[str, Field(max_length=53, pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")]
UserId = Annotated[int, Field(ge=1, le=2**31 - 1)]
Compute = dict[str, str | int | float]
Repository = Annotated[str, Field(max_length=255, pattern=r"^([^\s@]*/)?[^\s@:/]*$")]
Tag = Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$")]
Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
ImageReference = Annotated[str, Field(max_length=255, pattern=r"^\S+$")]


class Values(BaseModel):
    """A part of the values; a name that it does not know is refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class PullPolicy(StrEnum):
    """When the image is pulled; if empty, as Kubernetes does by default."""

    UNSAID = ""
    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


def _refuse_names(schema: Schema) -> None:
    """Charts of 0.1.0 had the name of an image here: Helm prints the constant."""
    schema |= {"if": {"type": "string"}, "then": {"const": _WRITE_AN_IMAGE}, "else": {"type": schema.pop("type")}}


class Image(Values):
    """Its image; what is left empty is that of the chart's version."""

    model_config = ConfigDict(json_schema_extra=_refuse_names)

    repository: Repository = Field(
        default="", description="Registry and name; if empty, tierbench/NAME in global.imageRegistry, or in ghcr.io."
    )
    tag: Tag = Field(default="", description="Its tag; if empty, the version of the chart.")
    digest: Digest = Field(default="", description="Its digest, as in sha256:…; it wins over the tag.")
    pull_policy: PullPolicy = PullPolicy.UNSAID


class PullSecret(Values):
    """A Secret to pull images with."""

    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="Its name.")


PullSecrets = Annotated[list[PullSecret], Field(max_length=16)]


class Program(Values):
    """What has an image."""

    image: Image = Image()


class Server(Program):
    """A server, and further images of it that may be measured."""

    alternatives: dict[str, ImageReference] = Field(
        default={},
        max_length=16,
        json_schema_extra={
            "propertyNames": {
                "pattern": IMAGE_NAME_PATTERN,
                "maxLength": LONGEST_IMAGE_NAME,
                "not": {"enum": [OWN_IMAGE]},
            }
        },
        description="Further images of it that benchmarks may ask for, each by a name, as in "
        '{"1.19": registry.example/image:1.19}; `default` is the one above, whose pullPolicy they share. No other is '
        "ever run.",
    )


class Resources(Values):
    """CPU and memory of its container."""

    requests: Compute = Field(default={"cpu": "50m", "memory": "128Mi"}, description="What it asks for.")
    limits: Compute = Field(default={"memory": "256Mi"}, description="What it may use at most.")


class ServiceAccount(Values):
    """The account by which it asks the API server."""

    create: bool = Field(default=True, description="Whether to make one. Set false for one of yours, by its name.")
    name: Annotated[str, Field(max_length=253)] = Field(
        default="", description="Its name; if empty, that of the release's objects."
    )
    annotations: dict[str, str] = Field(default={}, description="Annotations of one that is made.")


class Operator(Program):
    """The operator itself."""

    replicas: int = Field(
        default=1,
        ge=1,
        le=3,
        description="How many there are. One leads; others stand by on other nodes, where there are any, and one of "
        "them goes on within 15 s when the leader is gone.",
    )
    disruption_budget: bool = Field(
        default=False,
        description="Whether a PodDisruptionBudget has drains of nodes take one of them at a time.",
    )
    service_account: ServiceAccount = ServiceAccount()
    user: UserId | None = Field(
        default=65531,
        description="The user id that it runs as: another than that of workloads. With null the platform assigns one, "
        "as OpenShift does.",
    )
    resources: Resources = Resources()
    node_selector: dict[str, str] = Field(
        default={},
        description="Labels of the nodes that it may run on. Keep it off the nodes that are measured, "
        "as in {tierbench: operator}.",
    )
    tolerations: list[dict[str, Any]] = Field(
        default=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        description="Taints that it tolerates: that of a control plane, where nothing is measured.",
    )
    affinity: dict[str, Any] = Field(
        default={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "preference": {
                            "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
                        },
                    }
                ]
            }
        },
        description="Affinity of its pod. By default it prefers nodes of the control plane, whatever the value of "
        "their label, and runs on others if there are none.",
    )
    topology_spread_constraints: list[dict[str, Any]] = Field(
        default=[],
        description="How its pods are spread; if empty and there are several, over nodes where that can be.",
    )
    priority_class_name: str = Field(default="", max_length=253, description="PriorityClass of its pod.")
    labels: dict[str, str] = Field(default={}, description="Further labels of its pod.")
    annotations: dict[str, str] = Field(default={}, description="Annotations of its pod.")
    env: list[dict[str, Any]] = Field(
        default=[], description="Further environment variables, as in [{name: HTTPS_PROXY, value: http://proxy:3128}]."
    )


class Workloads(Values):
    """What runs for benchmarks: servers, clients, and what stands beside them."""

    user: UserId | None = Field(
        default=65530,
        description="The user and group id that they run as, which should be nobody else's. With null the platform "
        "assigns one, and the group by which they read their credentials, as OpenShift does; then nothing can be "
        "measured with storage.hostPath.",
    )
    priority_class_name: str = Field(
        default="",
        max_length=253,
        description="PriorityClass of their pods, as that they are the first to go where a node is full.",
    )


class LogLevel(StrEnum):
    """How much the operator logs."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Global(Values):
    """Values that a parent chart shares."""

    model_config = ConfigDict(extra="allow")

    image_registry: Registry = Field(
        default="",
        description="The registry of all images whose repository is empty, in place of ghcr.io, as in "
        "registry.example/mirror. `make push` fills it.",
    )
    image_pull_secrets: PullSecrets = Field(
        default=[], description="Secrets to pull images with, besides imagePullSecrets."
    )


class Writers(Values):
    """Who may write results, traces and statuses: the operator's account, whatever roles permit to others."""

    extra: list[Annotated[str, Field(min_length=1, max_length=512)]] = Field(
        default=[],
        max_length=64,
        json_schema_extra={"uniqueItems": True},
        description="Further users, such as one that restores a backup, as in [system:serviceaccount:velero:velero].",
    )


class Crds(Values):
    """The CustomResourceDefinitions, of which a cluster has one set."""

    install: bool = Field(
        default=True,
        description="Whether this release installs and upgrades them. Set false for each further release in a cluster.",
    )
    keep: bool = Field(
        default=True,
        description="Whether they stay when this release is uninstalled. If they go, all benchmarks and results go "
        "with them. A new release takes kept ones over with `helm install --take-ownership`.",
    )


class Leases(Values):
    """Exclusive use of nodes."""

    namespace: Namespace = Field(
        default="tierbench-leases",
        description="Where there is a Lease for each node in use. It must be the same for all releases in a cluster, "
        "or they measure on the same node at once. It is kept on uninstall.",
    )
    create: bool = Field(
        default=True,
        description="Whether to make it if it is not there. Set false where `helm template` is applied and another "
        "release has it.",
    )


class ServiceMonitor(Values):
    """A ServiceMonitor of the Prometheus operator."""

    enabled: bool = Field(default=False, description="Whether to make one. The cluster must know the kind.")
    interval: str = Field(default="30s", pattern=r"^[1-9][0-9]*(ms|s|m)$", description="Time between scrapes.")
    labels: dict[str, str] = Field(default={}, description="Labels by which your Prometheus selects it.")


class PrometheusRule(Values):
    """A PrometheusRule of the Prometheus operator, with alerts: a benchmark failed or is stuck, the operator is."""

    enabled: bool = Field(
        default=False,
        description="Whether to make one. The cluster must know the kind. One release in a cluster is enough.",
    )
    labels: dict[str, str] = Field(default={}, description="Labels by which your Prometheus selects it.")


class Dashboards(Values):
    """Grafana dashboards, as ConfigMaps that the usual sidecar of Grafana finds."""

    enabled: bool = Field(
        default=False, description="Whether to make them. One release in a cluster is enough: they show all."
    )
    labels: dict[str, str] = Field(
        default={"grafana_dashboard": "1"},
        description="Labels by which the sidecar selects them. The default is that of kube-prometheus-stack.",
    )
    annotations: dict[str, str] = Field(
        default={"grafana_folder": "tierbench"},
        description="Annotations, such as the one that names the folder in Grafana. A sidecar that was given no "
        "folderAnnotation puts them into its default folder.",
    )


class NetworkPolicies(Values):
    """NetworkPolicies, which take effect where the cluster's network plugin enforces them."""

    operator: bool = Field(
        default=True,
        description="Whether the operator's pod takes connections on its HTTP port alone, and makes none but to DNS "
        "and to apiServerPorts.",
    )
    scrapers: list[dict[str, Any]] = Field(
        default=[],
        description="Who may connect to the HTTP port, as peers of a NetworkPolicy, for example "
        "[{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]; none means anybody. A node's "
        "kubelet always may.",
    )
    api_server_ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(
        default=[443, 6443, 8443, 16443],
        min_length=1,
        description="Ports of the API server, as its own machine has them: no policy can name its address.",
    )
    benchmarks: bool = Field(
        default=True,
        description="Whether each benchmark's pods talk to one another and to nobody else. What a spec asks for stays "
        "open: its ports of the node with access: NodePort, the way to external servers. It binds no pod with access: "
        "HostNetwork, nor Strimzi's.",
    )


class Metrics(Values):
    """How Prometheus finds /metrics, and what it and Grafana make of them."""

    authorization: bool = Field(
        default=False,
        description="Whether /metrics is served over TLS, with a certificate that is made at the start, to those alone "
        "who send a token of an account that may get /metrics. The chart makes a ClusterRole for them: bind it to your "
        "Prometheus.",
    )
    annotations: bool = Field(
        default=True,
        description="Whether the Service bears the prometheus.io/scrape, port and path annotations. With a "
        "ServiceMonitor it has none: Prometheus would scrape twice.",
    )
    service_monitor: ServiceMonitor = ServiceMonitor()
    prometheus_rule: PrometheusRule = PrometheusRule()
    dashboards: Dashboards = Dashboards()


class PolicyValues(Policy):
    """What benchmarks may ask for."""

    admission: bool = Field(
        default=True,
        description="Whether a ValidatingAdmissionPolicy refuses benchmarks as they are created. Only then is their "
        "author asked to have the right to read the Secrets and ConfigMaps that they name; the operator holds every "
        "run to all else in any case.",
    )


class ChartValues(Values):
    """All values of the chart."""

    watch_namespaces: list[Namespace] = Field(
        default=[],
        max_length=64,
        json_schema_extra={"uniqueItems": True},
        description="The namespaces whose benchmarks this release runs, as in [team-a, team-b]. Two releases must not "
        "watch one namespace: give each its own. The operator has no rights in others.",
    )
    all_namespaces: bool = Field(
        default=False,
        description="Whether it runs those of all namespaces, in place of watchNamespaces. The operator may then "
        "create and delete pods and Secrets in the whole cluster: whoever takes it over has the cluster.",
    )
    name_override: Name = Field(default="", description="In place of the chart's name, in names and labels.")
    fullname_override: Name = Field(default="", description="The name of the release's objects.")
    global_: Global = Field(default=Global(), alias="global")
    operator: Operator = Operator()
    workloads: Workloads = Workloads()
    client: Program = Field(
        default=Program(), description="The client of file transfers and brokers, and the agent beside servers."
    )
    limits: Quotas = Quotas()
    image_pull_secrets: PullSecrets = Field(
        default=[],
        description="Secrets to pull images with, as in [{name: registry}]. Each must be in the release's namespace "
        "and in every namespace that has benchmarks.",
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="How much the operator logs.")
    log_format: LogFormat = LogFormat.TEXT
    writers: Writers = Writers()
    crds: Crds = Crds()
    leases: Leases = Leases()
    policy: PolicyValues = PolicyValues()
    metrics: Metrics = Metrics()
    network_policies: NetworkPolicies = NetworkPolicies()
