"""An operator for tests: its settings, and informers that relist when a test asks for it."""

from yarl import URL

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tests.unit.controller.test_settings import ENVIRONMENT
from tierbench.api.node_class import NODE_CLASSES
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.controller.handlers import handled, reflected
from tierbench.controller.settings import Settings
from tierbench.kube.informer import ListObserver
from tierbench.kube.meta import NODES


def settings_of(**environment: str) -> Settings:
    """Returns the settings of an operator that watches all namespaces, unless the environment says otherwise."""
    return Settings.from_environment({**ENVIRONMENT, "TIERBENCH_WATCH_NAMESPACES": "", **environment})


def context_of(api: ApiServer, **environment: str) -> Context:
    """Returns the context of an operator with these settings."""
    return Context(InProcessKube(api), settings_of(**environment))


def relist(api: ApiServer, context: Context) -> None:
    """Relists all types, except nodes and their classes, which tests set directly."""
    advisor = Advisor(context)
    informers = [
        each
        for each in (*reflected(context, advisor), *handled(context, advisor))
        if each.resource not in {NODES, NODE_CLASSES}
    ]
    lists = ListObserver(informers, "")
    for each in informers:
        for namespace in each.namespaces:
            path = each.resource.path(namespace)
            lists.observe(URL(path), api.page_of(path, each.labels))
