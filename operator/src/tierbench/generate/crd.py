"""A kind's CustomResourceDefinition: its models as a structural schema, its rules, its columns."""

from typing import Any, Final

from tierbench.api.model import GROUP, VERSION, Column, Resource
from tierbench.api.schema import object_schema
from tierbench.generate.render import NOTICE, to_yaml

CATEGORY: Final = "tierbench"


def custom_resource_definition(model: type[Resource]) -> dict[str, Any]:
    """The CRD of a kind, as the API server takes it."""
    kind = model.KIND
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": list(kind.short_names),
                "categories": [CATEGORY],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_printer_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": object_schema(model)},
                }
            ],
        },
    }


def crd_yaml(model: type[Resource]) -> str:
    """The same as a file for `kubectl apply`."""
    return f"# {NOTICE.format(source='api')}\n" + to_yaml(custom_resource_definition(model))


def _printer_column(column: Column) -> dict[str, Any]:
    body: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        body["priority"] = column.priority
    if column.description:
        body["description"] = column.description
    return body
