"""A broker that is there already: only the agent is deployed, on the clients' node, so that clients can meet."""

from tierbench.workloads.agent import agent_container, agent_service
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN, LABEL_SLOT, ROLE_SERVER, Owner
from tierbench.workloads.pods import POD_SECURITY, placement, pod_basics
from tierbench.workloads.workload import Images, Manifest, ServerSite


def external_manifests(owner: Owner, images: Images, site: ServerSite) -> tuple[Manifest, ...]:
    """The agent's Service, and its pod."""
    labels = {LABEL_RUN: str(site.run), LABEL_ROLE: ROLE_SERVER, LABEL_SLOT: str(site.slot_index)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": owner.metadata(site.name, labels),
        "spec": {
            **pod_basics(images.pull_secrets),
            **placement(site.node, site.node_class),
            "restartPolicy": "Always",
            "securityContext": POD_SECURITY,
            "containers": [agent_container(images, (), ["--directory="], ())],
            "volumes": [{"name": "credentials", "secret": {"secretName": site.name, "defaultMode": 0o440}}],
        },
    }
    return (agent_service(owner, site, labels), pod)
