"""The model of the chart's values."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tierbench.api.model import IMAGE_NAME_PATTERN, LONGEST_IMAGE_NAME, OWN_IMAGE
from tierbench.api.policy import Policy, Quotas
from tierbench.controller.logs import LogFormat

_NAMESPACE_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"

Registry = Annotated[str, Field(max_length=512, pattern=r"^\S*$")]
Namespace = Annotated[str, Field(min_length=1, max_length=63, pattern=_NAMESPACE_PATTERN)]
Name = Annotated[str, Field(max_length=53, pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")]
UserId = Annotated[int, Field(ge=1, le=2**31 - 1)]
ServiceType = Literal["ClusterIP", "NodePort", "LoadBalancer"]
Compute = dict[str, str | int | float]
Repository = Annotated[str, Field(max_length=255, pattern=r"^([^\s@]*/)?[^\s@:/]*$")]
Tag = Annotated[str, Field(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$")]
Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]
ImageReference = Annotated[str, Field(max_length=255, pattern=r"^\S+$")]


class Values(BaseModel):
    """A section of the values. Helm refuses unknown names."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class PullPolicy(StrEnum):
    """When the kubelet pulls the image. Empty means the default of Kubernetes."""

    UNSAID = ""
    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class Image(Values):
    """The image. Empty values mean the image of the chart's version."""

    repository: Repository = Field(
        default="", description="Registry and name. Empty means tierbench/NAME in global.imageRegistry, or in ghcr.io."
    )
    tag: Tag = Field(default="", description="The tag. Empty means the version of the chart.")
    digest: Digest = Field(default="", description="The digest, as in sha256:…. It takes precedence over the tag.")
    pull_policy: PullPolicy = PullPolicy.UNSAID


class PullSecret(Values):
    """A Secret with credentials of a registry."""

    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="The name of the Secret.")


PullSecrets = Annotated[list[PullSecret], Field(max_length=16)]


class Program(Values):
    """A program with an image."""

    image: Image = Image()


class Server(Program):
    """A server, and further images of it that benchmarks may measure."""

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
        description="Further images that benchmarks may request by name, as in "
        '{"1.19": registry.example/image:1.19}. The name `default` means the image above, and all use its pullPolicy. '
        "The operator runs no other image.",
    )


class Resources(Values):
    """CPU and memory of the container."""

    requests: Compute = Field(default={"cpu": "50m", "memory": "128Mi"}, description="Resource requests.")
    limits: Compute = Field(default={"memory": "256Mi"}, description="Resource limits.")


class ServiceAccount(Values):
    """The account that the operator uses at the API server."""

    create: bool = Field(
        default=True,
        description="Whether the chart creates it. Set false to use an existing account, and set its name.",
    )
    name: Annotated[str, Field(max_length=253)] = Field(
        default="", description="The name. Empty means the name of the release's objects."
    )
    annotations: dict[str, str] = Field(default={}, description="Annotations of the account that the chart creates.")


class PodDisruptionBudget(Values):
    """A PodDisruptionBudget for the operator's pods."""

    enabled: bool = Field(
        default=False, description="Whether to create it. Drains of nodes then evict only one operator pod at a time."
    )


class Operator(Program):
    """The operator."""

    replica_count: int = Field(
        default=1,
        ge=1,
        le=3,
        description="Number of operator pods. One is the leader. The others are standbys, on other nodes if there are "
        "any. A standby takes over within 15 s after the leader fails.",
    )
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    service_account: ServiceAccount = ServiceAccount()
    run_as_user: UserId | None = Field(
        default=65531,
        description="The user id of the operator. It must differ from workloads.runAsUser. With null, the platform "
        "assigns one, as OpenShift does.",
    )
    resources: Resources = Resources()
    node_selector: dict[str, str] = Field(
        default={},
        description="Labels of the nodes on which the operator may run. Keep it away from the nodes that you measure, "
        "as in {tierbench: operator}.",
    )
    tolerations: list[dict[str, Any]] = Field(
        default=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        description="Taints that the operator tolerates. The default is the taint of control planes, where benchmarks "
        "do not run.",
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
        description="Affinity of the operator's pod. By default it prefers nodes of the control plane, with any value "
        "of their label. It runs on other nodes if there are none.",
    )
    topology_spread_constraints: list[dict[str, Any]] = Field(
        default=[],
        description="Topology spread constraints of the operator's pods. Empty means that several pods spread over "
        "nodes if possible.",
    )
    priority_class_name: str = Field(default="", max_length=253, description="PriorityClass of the operator's pod.")
    pod_labels: dict[str, str] = Field(default={}, description="Additional labels of the operator's pod.")
    pod_annotations: dict[str, str] = Field(default={}, description="Annotations of the operator's pod.")
    extra_env: list[dict[str, Any]] = Field(
        default=[],
        description="Additional environment variables, as in [{name: HTTPS_PROXY, value: http://proxy:3128}].",
    )


class Workloads(Values):
    """The pods of benchmarks: servers, clients and agents."""

    run_as_user: UserId | None = Field(
        default=65530,
        description="The user and group id of these pods. No other workload should use it. With null, the platform "
        "assigns the user, and the group that may read the credentials, as OpenShift does. Benchmarks cannot use "
        "storage.hostPath then.",
    )
    priority_class_name: str = Field(
        default="",
        max_length=253,
        description="PriorityClass of these pods. A low one lets a full node evict them first.",
    )


class LogLevel(StrEnum):
    """The least severe messages that the operator logs."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Global(Values):
    """Values that a parent chart shares with its subcharts."""

    model_config = ConfigDict(extra="allow")

    image_registry: Registry = Field(
        default="",
        description="The registry of all images whose repository is empty, instead of ghcr.io, as in "
        "registry.example/mirror. `make push` fills such a registry.",
    )
    image_pull_secrets: PullSecrets = Field(
        default=[], description="Secrets for pulling images, in addition to imagePullSecrets."
    )


class Writers(Values):
    """The users who may write results, traces and statuses in addition to the operator, regardless of roles."""

    extra: list[Annotated[str, Field(min_length=1, max_length=512)]] = Field(
        default=[],
        max_length=64,
        json_schema_extra={"uniqueItems": True},
        description="Names of users, such as one that restores backups, as in [system:serviceaccount:velero:velero].",
    )


class Crds(Values):
    """The CustomResourceDefinitions. A cluster has one set."""

    enabled: bool = Field(
        default=True,
        description="Whether this release installs and upgrades them. Set false in all but one release of a cluster.",
    )
    keep: bool = Field(
        default=True,
        description="Whether `helm uninstall` keeps them. Their deletion deletes all benchmarks and results. A new "
        "release adopts them with `helm install --take-ownership`.",
    )


class Leases(Values):
    """Exclusive use of nodes."""

    namespace: Namespace = Field(
        default="tierbench-leases",
        description="The namespace of the Leases, one per node in use. All releases of a cluster must use the same "
        "one, or they measure on the same node at the same time. `helm uninstall` keeps it.",
    )
    create: bool = Field(
        default=True,
        description="Whether to create it if it does not exist. Set false if you apply the output of `helm template`, "
        "and another release has it.",
    )


class ServiceMonitor(Values):
    """A ServiceMonitor of the Prometheus operator."""

    enabled: bool = Field(default=False, description="Whether to create it. The cluster must have this CRD.")
    interval: str = Field(default="30s", pattern=r"^[1-9][0-9]*(ms|s|m)$", description="Time between scrapes.")
    labels: dict[str, str] = Field(default={}, description="Labels by which your Prometheus selects it.")


class PrometheusRule(Values):
    """A PrometheusRule of the Prometheus operator, with alerts on benchmarks and on the operator."""

    enabled: bool = Field(
        default=False,
        description="Whether to create it. The cluster must have this CRD. One release in a cluster is enough.",
    )
    labels: dict[str, str] = Field(default={}, description="Labels by which your Prometheus selects it.")


class Dashboards(Values):
    """Grafana dashboards, as ConfigMaps for the dashboard sidecar of Grafana."""

    enabled: bool = Field(
        default=False,
        description="Whether to create them. One release in a cluster is enough: they show all releases.",
    )
    labels: dict[str, str] = Field(
        default={"grafana_dashboard": "1"},
        description="Labels by which the sidecar selects them. The default is that of kube-prometheus-stack.",
    )
    annotations: dict[str, str] = Field(
        default={"grafana_folder": "tierbench"},
        description="Annotations, such as the one that names the folder in Grafana. A sidecar without folderAnnotation "
        "uses its default folder.",
    )


class NetworkPolicies(Values):
    """NetworkPolicies. They have an effect only if the network plugin of the cluster enforces them."""

    operator: bool = Field(
        default=True,
        description="Whether to restrict the operator's pod: incoming connections to its HTTP port, outgoing ones to "
        "DNS and apiServerPorts.",
    )
    scrapers: list[dict[str, Any]] = Field(
        default=[],
        description="The peers of a NetworkPolicy that may connect to the HTTP port, for example "
        "[{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]. Empty means all peers. The "
        "kubelet of the node may always connect.",
    )
    api_server_ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(
        default=[443, 6443, 8443, 16443],
        min_length=1,
        description="Ports of the API server on its own machine. A NetworkPolicy cannot name its address.",
    )
    benchmarks: bool = Field(
        default=True,
        description="Whether the pods of a benchmark may connect only to each other. Connections that a spec requests "
        "stay open: node ports with access: NodePort, and external servers. The policies do not apply to pods with "
        "access: HostNetwork, or to Strimzi's pods.",
    )


class Collector(Values):
    """Where clients push trials if their logs cannot be read, and members of external classes ask for work."""

    enabled: bool = Field(default=False, description="Whether the operator has a collector, and a Secret with its key.")
    address: Annotated[str, Field(max_length=260, pattern=r"^(\S+:[0-9]{1,5})?$")] = Field(
        default="", description="Host and port where clients reach it, as in 192.0.2.7:30443. Empty means its Service."
    )
    service_type: ServiceType = Field(default="ClusterIP", description="The type of its Service.")
    node_port: int = Field(default=0, ge=0, le=65535, description="The port of its Service on nodes. 0 means any one.")


class Metrics(Values):
    """Integration with Prometheus and Grafana."""

    authorization: bool = Field(
        default=True,
        description="Whether /metrics requires TLS and a token of an account that may get /metrics. Metrics name "
        "benchmarks and nodes of all namespaces. The operator creates the certificate when it starts. The chart "
        "creates a ClusterRole: bind it to your Prometheus.",
    )
    scrape_annotations: bool = Field(
        default=True,
        description="Whether the Service has the annotations prometheus.io/scrape, port and path. With a "
        "ServiceMonitor it has none, as Prometheus would scrape twice.",
    )
    service_monitor: ServiceMonitor = ServiceMonitor()
    prometheus_rule: PrometheusRule = PrometheusRule()
    dashboards: Dashboards = Dashboards()


class PolicyValues(Policy):
    """Limits on what benchmarks may use."""

    admission: bool = Field(
        default=True,
        description="Whether a ValidatingAdmissionPolicy refuses benchmarks that break the policy at creation. It also "
        "requires that the author may read the Secrets and ConfigMaps that they name. The operator checks all other "
        "rules before every run in any case.",
    )


class ChartValues(Values):
    """All values of the chart."""

    watch_namespaces: list[Namespace] = Field(
        default=[],
        max_length=64,
        json_schema_extra={"uniqueItems": True},
        description="The namespaces whose benchmarks this release runs, as in [team-a, team-b]. Two releases must not "
        "watch the same namespace. The operator has no rights in other namespaces.",
    )
    all_namespaces: bool = Field(
        default=False,
        description="Whether this release runs the benchmarks of all namespaces, instead of watchNamespaces. The "
        "operator may then create and delete pods and Secrets in the whole cluster. An attacker who controls it "
        "controls the cluster.",
    )
    name_override: Name = Field(default="", description="Replaces the name of the chart in names and labels.")
    fullname_override: Name = Field(default="", description="Replaces the name of the release's objects.")
    common_labels: dict[str, str] = Field(
        default={}, description="Additional labels of all objects of the chart. Objects of benchmarks do not have them."
    )
    global_: Global = Field(default=Global(), alias="global")
    operator: Operator = Operator()
    workloads: Workloads = Workloads()
    client: Program = Field(
        default=Program(), description="The client of file transfers and brokers, and the agent next to servers."
    )
    limits: Quotas = Quotas()
    image_pull_secrets: PullSecrets = Field(
        default=[],
        description="Secrets for pulling images, as in [{name: registry}]. Each must exist in the namespace of the "
        "release and in every namespace with benchmarks.",
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="The least severe messages that the operator logs.")
    log_format: LogFormat = LogFormat.TEXT
    writers: Writers = Writers()
    crds: Crds = Crds()
    leases: Leases = Leases()
    policy: PolicyValues = PolicyValues()
    metrics: Metrics = Metrics()
    collector: Collector = Collector()
    network_policies: NetworkPolicies = NetworkPolicies()
