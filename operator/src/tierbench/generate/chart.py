"""The generated parts of the Helm chart: CRDs as templates, and the rules of its roles."""

from collections.abc import Iterable
from typing import Any

from tierbench.api.model import Resource
from tierbench.api.permissions import PERMISSIONS, Permission, Scope
from tierbench.generate.crd import custom_resource_definition
from tierbench.generate.render import NOTICE, to_yaml

_CRD_METADATA = """\
metadata:
  name: {name}
  labels:
    {{{{- include "tierbench.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
  {{{{- end }}}}
"""


def crd_template(model: type[Resource]) -> str:
    """A CRD that the chart installs and upgrades. Helm leaves what it finds in a folder crds/ as it is for ever."""
    crd = custom_resource_definition(model)
    head = to_yaml({"apiVersion": crd["apiVersion"], "kind": crd["kind"]})
    metadata = _CRD_METADATA.format(name=crd["metadata"]["name"])
    body = _escaped(to_yaml({"spec": crd["spec"]}))
    return f"{_comment('api')}{{{{- if .Values.crds.install }}}}\n{head}{metadata}{body}{{{{- end }}}}\n"


def rules_template() -> str:
    """The rules of each scope, as named templates that rbac.yaml puts into roles."""
    return _comment("api/permissions.py") + "".join(
        f'{{{{- define "tierbench.rules.{scope.lower()}" -}}}}\n{_rules(scope)}{{{{- end }}}}\n' for scope in Scope
    )


def policy_rule(permission: Permission) -> dict[str, Any]:
    """A permission as rbac.authorization.k8s.io/v1 has it."""
    return {
        "apiGroups": [permission.group],
        "resources": list(permission.resources),
        "verbs": list(permission.verbs),
    }


def _rules(scope: Scope) -> str:
    return "".join(_rule(permission) for permission in _of(scope))


def _of(scope: Scope) -> Iterable[Permission]:
    return (permission for permission in PERMISSIONS if permission.scope is scope)


def _rule(permission: Permission) -> str:
    return f"# {permission.why}\n{to_yaml([policy_rule(permission)], flat_leaves=True)}"


def _comment(source: str) -> str:
    return "{{- /* " + NOTICE.format(source=source) + " */ -}}\n"


def _escaped(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')
