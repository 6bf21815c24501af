"""The generated parts of the Helm chart: CRDs as templates, rules of roles, what is checked."""

from collections.abc import Iterable
from typing import Any

from tierbench.api.model import GROUP, Resource
from tierbench.api.rbac import Grant, Permission, Scope, operators_own, permissions, user_grants
from tierbench.generate.crd import custom_resource_definition
from tierbench.generate.render import NOTICE, to_yaml
from tierbench.generate.values import sections

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

_USER_ROLE = """\
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
    """A CRD that the chart installs and upgrades. Helm leaves what it finds in a folder crds/ as it is for ever."""
    crd = custom_resource_definition(model)
    head = to_yaml({"apiVersion": crd["apiVersion"], "kind": crd["kind"]})
    metadata = _CRD_METADATA.format(name=crd["metadata"]["name"])
    body = _escaped(to_yaml({"spec": crd["spec"]}))
    return f"{_comment('api')}{{{{- if .Values.crds.install }}}}\n{head}{metadata}{body}{{{{- end }}}}\n"


def rules_template() -> str:
    """The rules of each scope, as named templates that rbac.yaml puts into roles."""
    return _comment("api/rbac.py") + "".join(
        f'{{{{- define "tierbench.rules.{scope.lower()}" -}}}}\n{_rules(scope)}{{{{- end }}}}\n' for scope in Scope
    )


def user_roles_template() -> str:
    """ClusterRoles that Kubernetes adds to its own; a cluster has one set, as it has of the CRDs."""
    roles = "".join(_user_role(grant) for grant in user_grants())
    return f"{_comment('api/rbac.py')}{{{{- if .Values.crds.install }}}}\n{roles}{{{{- end }}}}\n"


def checked_template() -> str:
    """What writers.yaml guards, and the sections of the values without which no template works."""
    return (
        f"{_comment('api/rbac.py and generate/values.py')}"
        f'{{{{- define "tierbench.operatorsOwn" -}}}}\n{to_yaml(list(operators_own()))}{{{{- end }}}}\n'
        f'{{{{- define "tierbench.sections" -}}}}\n{" ".join(sections())}\n{{{{- end }}}}\n'
    )


def _user_role(grant: Grant) -> str:
    rule = {"apiGroups": [GROUP], "resources": list(grant.resources), "verbs": list(grant.verbs)}
    return _USER_ROLE.format(why=grant.why, role=grant.role, rules=to_yaml([rule], flat_leaves=True))


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
    return (permission for permission in permissions() if permission.scope is scope)


def _rule(permission: Permission) -> str:
    return f"# {permission.why}\n{to_yaml([policy_rule(permission)], flat_leaves=True)}"


def _comment(source: str) -> str:
    return "{{- /* " + NOTICE.format(source=source) + " */ -}}\n"


def _escaped(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')
