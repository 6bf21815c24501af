"""The generated files of the Helm chart: values, CRDs as templates, rules of roles."""

import json
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, Final

from pydantic import Field, create_model

from tierbench.api.model import GROUP, Resource
from tierbench.api.rbac import Grant, Permission, Scope, operator_owned_resources, permissions, user_grants
from tierbench.api.schema import Schema, inline_references, simplify
from tierbench.generate.schemas import NOTICE, WIDTH, custom_resource_definition, to_yaml
from tierbench.generate.values import ChartValues, Program, Server, Values
from tierbench.kinds.registry import BENCHMARKS, kinds

_CRD_METADATA: Final = """\
metadata:
  name: {name}
  labels:
    {{{{- include "tierbench.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
  {{{{- end }}}}
"""

_USER_ROLE: Final = """\
---
# {why}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: tierbench-{role}
  labels:
    {{{{- include "tierbench.labels" . | nindent 4 }}}}
    rbac.authorization.k8s.io/aggregate-to-{role}: "true"
rules:
{rules}"""


def crd_template(model: type[Resource]) -> str:
    """Returns a CRD as a template, which Helm installs and upgrades. Helm never upgrades files in a folder crds/."""
    crd = custom_resource_definition(model)
    head = to_yaml({"apiVersion": crd["apiVersion"], "kind": crd["kind"]})
    metadata = _CRD_METADATA.format(name=crd["metadata"]["name"])
    body = _escaped(to_yaml({"spec": crd["spec"]}))
    return f"{_comment('api')}{{{{- if .Values.crds.enabled }}}}\n{head}{metadata}{body}{{{{- end }}}}\n"


def rules_template() -> str:
    """Returns the rules of each scope as named templates for rbac.yaml."""
    return _comment("api/rbac.py") + "".join(
        f'{{{{- define "tierbench.rules.{scope.lower()}" -}}}}\n{_rules(scope)}{{{{- end }}}}\n' for scope in Scope
    )


def user_roles_template() -> str:
    """Returns the ClusterRoles that extend view, edit and admin. A cluster has one set, as of CRDs."""
    roles = "".join(_user_role(grant) for grant in user_grants())
    return f"{_comment('api/rbac.py')}{{{{- if .Values.crds.enabled }}}}\n{roles}{{{{- end }}}}\n"


def checked_template() -> str:
    """Returns what templates need: objects that writers.yaml protects, sections of the values, kinds of benchmark."""
    return (
        f"{_comment('api/rbac.py and generate/values.py')}"
        f'{{{{- define "tierbench.operatorsOwn" -}}}}\n{to_yaml(list(operator_owned_resources()))}{{{{- end }}}}\n'
        f'{{{{- define "tierbench.sections" -}}}}\n{" ".join(sections())}\n{{{{- end }}}}\n'
        f'{{{{- define "tierbench.kinds" -}}}}\n{" ".join(sorted(BENCHMARKS))}\n{{{{- end }}}}\n'
    )


def _user_role(grant: Grant) -> str:
    rule = {"apiGroups": [GROUP], "resources": list(grant.resources), "verbs": list(grant.verbs)}
    return _USER_ROLE.format(why=grant.why, role=grant.role, rules=to_yaml([rule], flat_leaves=True))


def policy_rule(permission: Permission) -> dict[str, Any]:
    """Returns a permission as a PolicyRule of rbac.authorization.k8s.io/v1."""
    return {
        "apiGroups": [permission.group],
        "resources": list(permission.resources),
        "verbs": list(permission.verbs),
    }


def _rules(scope: Scope) -> str:
    return "".join(
        f"# {permission.why}\n{to_yaml([policy_rule(permission)], flat_leaves=True)}"
        for permission in permissions()
        if permission.scope is scope
    )


def _comment(source: str) -> str:
    return "{{- /* " + NOTICE.format(source=source) + " */ -}}\n"


def _escaped(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')


def values_schema() -> Schema:
    """Returns the JSON Schema of the values without $ref."""
    schema, images = _schema(ChartValues), _schema(_images())["properties"]
    properties: Schema = {}
    for name, child in schema["properties"].items():
        properties |= {name: child, **(images if name == "client" else {})}
    return schema | {"properties": properties}


def _schema(model: type[Values]) -> Schema:
    generated = simplify(model.model_json_schema(by_alias=True))
    return inline_references(generated, generated["$defs"])


def _images() -> type[Values]:
    """Returns a model with the images of all kinds of benchmark. They follow the image of the client."""
    fields: dict[str, Any] = {}
    for name, image in ((name, image) for kind in kinds() for name, image in kind.images.items()):
        model = Server if image.alternatives else Program
        fields[name] = (model, Field(default=model(), description=image.description))
    return create_model("Images", __base__=Values, **fields)


def sections() -> Iterator[str]:
    """Yields the paths of values that contain values, outer ones first."""
    return _sections(values_schema(), ())


def _sections(schema: Schema, path: tuple[str, ...]) -> Iterator[str]:
    for name, child in schema["properties"].items():
        if "properties" in child:
            yield ".".join((*path, name))
            yield from _sections(child, (*path, name))


def values_schema_json() -> str:
    """Returns values.schema.json, which Helm checks values with."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **values_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def values_yaml() -> str:
    """Returns values.yaml: all defaults with their descriptions as comments."""
    notice = NOTICE.format(source="generate/values.py")
    return f"# {notice}\n" + _documented(values_schema(), "")


def _documented(schema: Schema, indent: str) -> str:
    text = ""
    for name, child in schema["properties"].items():
        text += "" if indent else "\n"
        comment = wrap(child["description"], WIDTH - len(indent) - 2, break_on_hyphens=False)
        text += "".join(f"{indent}# {line}\n" for line in comment)
        if "properties" in child:
            text += f"{indent}{name}:\n{_documented(child, indent + '  ')}"
        else:
            text += "".join(f"{indent}{line}\n" for line in to_yaml({name: child["default"]}).splitlines())
    return text
