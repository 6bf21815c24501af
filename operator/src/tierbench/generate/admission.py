"""The policy as ValidatingAdmissionPolicies of the chart: what the operator refuses is refused as it is created."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from tierbench.api import policy
from tierbench.api.benchmark import NOTHING, Benchmark
from tierbench.api.model import GROUP, VERSION
from tierbench.api.policy import EVERY_OTHER, Policy
from tierbench.generate.schemas import NOTICE, to_yaml
from tierbench.kinds.registry import BENCHMARKS

UNREADABLE_ACCOUNT: Final = (
    "you may not read all of the Secrets [%s], which would be sent to external brokers: name your own, or have an "
    "administrator let you get them"
)
UNREADABLE_CONFIG_MAP: Final = (
    "you may not read all of the ConfigMaps [%s], whose messages would be sent: name your own, or have an "
    "administrator let you get them"
)


@dataclass(frozen=True)
class _Refusal:
    """Which of what is `asked` for is refused, in CEL, under a name; a message, and what is said in its places."""

    name: str
    asked: str
    refused: str
    message: str
    places: tuple[str, ...]


def _is_of(networks: str, names: str) -> str:
    """Whether the host of an address `a` is in a network, or has a name."""
    host = "[a.substring(0, a.lastIndexOf(':')).lowerAscii().replace('[', '').replace(']', '')]"
    return (
        f"{host}.exists(h, isIP(h) ? variables.{networks}.exists(n, cidr(n).containsIP(h))"
        f" : variables.{names}.exists(n, h == n || n.startsWith('*.') && h.endsWith(n.substring(1))))"
    )


def _unreadable(resource: str) -> str:
    read = f"authorizer.group('').resource('{resource}').namespace(request.namespace).name(n).check('get')"
    return f"filter(n, !{read}.allowed())"


_DISGUISED: Final = "a.startsWith('[') && !isIP(a.substring(1, a.lastIndexOf(':') - 1))"
_REFUSALS: Final = (
    _Refusal(
        "refusedAccess",
        "access",
        "filter(a, !(a in variables.access))",
        policy.ACCESS_REFUSED,
        ("variables.refusedAccess[0]", "variables.access.join(', ')"),
    ),
    _Refusal(
        "refusedClasses",
        "node_classes",
        "filter(c, !(c in variables.classes))",
        policy.NODE_CLASS_REFUSED,
        ("variables.refusedClasses[0]", "request.namespace", "variables.classes.join(', ')"),
    ),
    _Refusal(
        "refusedPaths",
        "host_paths",
        "filter(p, !variables.hostPaths.exists(f, (p + '/').startsWith(f + '/')))",
        policy.HOST_PATH_REFUSED,
        ("variables.refusedPaths[0]", "variables.hostPaths.join(', ')"),
    ),
    _Refusal(
        "refusedAddresses",
        "addresses",
        f"filter(a, {_DISGUISED} || {_is_of('networks', 'refusedNames')})",
        policy.ADDRESS_REFUSED,
        ("variables.refusedAddresses[0]",),
    ),
    _Refusal(
        "unlistedAddresses",
        "addresses",
        f"filter(a, size(variables.allowed) > 0 && !{_is_of('allowedNetworks', 'allowedNames')})",
        policy.ADDRESS_UNLISTED,
        ("variables.unlistedAddresses[0]", "variables.allowed.join(', ')"),
    ),
    _Refusal(
        "unencryptedSecrets",
        "plain_secrets",
        "filter(s, !variables.plainSecrets)",
        policy.UNENCRYPTED,
        ("variables.unencryptedSecrets[0]",),
    ),
    # Which of them it is cannot be said: messages are made without the authorizer.
    _Refusal(
        "unreadableSecrets",
        "secrets",
        _unreadable("secrets"),
        UNREADABLE_ACCOUNT,
        ("variables.askedSecrets.join(', ')",),
    ),
    _Refusal(
        "unreadableConfigMaps",
        "config_maps",
        _unreadable("configmaps"),
        UNREADABLE_CONFIG_MAP,
        ("variables.askedConfigMaps.join(', ')",),
    ),
)
# What follows from values. The API server's own Service is the policy's parameter.
_DERIVED: Final = {
    "networks": "variables.refusedNetworks + params.spec.clusterIPs.map(a, a + (ip(a).family() == 4 ? '/32' : '/128'))",
    "allowed": "variables.allowedNetworks + variables.allowedNames",
    "classes": "request.namespace in variables.nodeClasses ? variables.nodeClasses[request.namespace]"
    f" : '{EVERY_OTHER}' in variables.nodeClasses ? variables.nodeClasses['{EVERY_OTHER}']"
    " : variables.askedNodeClasses",
}

_HEAD: Final = """\
---
apiVersion: admissionregistration.k8s.io/v1
kind: {kind}
metadata:
  name: {{{{ .Release.Namespace }}}}.{{{{ include "tierbench.fullname" . }}}}.{plural}
  labels:
    {{{{- include "tierbench.labels" . | nindent 4 }}}}
spec:
"""
_BINDING: Final = """\
  policyName: {{{{ .Release.Namespace }}}}.{{{{ include "tierbench.fullname" . }}}}.{plural}
  validationActions: [Deny]
  # The API server's own Service: no external server may have its addresses.
  paramRef:
    name: kubernetes
    namespace: default
    parameterNotFoundAction: Deny
  {{{{- with .Values.watchNamespaces }}}}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - key: kubernetes.io/metadata.name
          operator: In
          values: {{{{- toYaml . | nindent 12 }}}}
  {{{{- end }}}}
"""


def admission_template() -> str:
    """A policy and its binding for each kind of benchmark."""
    notice = "{{- /* " + NOTICE.format(source="generate/admission.py") + " */ -}}\n"
    bodies = "".join(_policy(model) + _binding(model) for model in BENCHMARKS.values())
    return f"{notice}{{{{- if .Values.policy.admission }}}}\n{bodies}{{{{- end }}}}\n"


def _policy(model: type[Benchmark]) -> str:
    """Only what is created is held to it: of a spec nothing that is judged here can change."""
    plural = model.KIND.plural
    rule = {"apiGroups": [GROUP], "apiVersions": [VERSION], "operations": ["CREATE"], "resources": [plural]}
    asked = {name: expression for name, expression in asdict(model.POLICY_SUBJECT).items() if expression != NOTHING}
    refusals = [refusal for refusal in _REFUSALS if refusal.asked in asked]
    variables = {
        **{_asked(name): expression for name, expression in asked.items()},
        **_DERIVED,
        **{refusal.name: f"variables.{_asked(refusal.asked)}.{refusal.refused}" for refusal in refusals},
    }
    fixed = {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "Service"},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [_validation(refusal) for refusal in refusals],
    }
    values = "".join(_of_values())
    named = [{"name": name, "expression": expression} for name, expression in variables.items()]
    head = _HEAD.format(kind="ValidatingAdmissionPolicy", plural=plural)
    return f"{head}{_indented(fixed)}  variables:\n{values}{_indented(named)}"


def _of_values() -> Iterator[str]:
    """The chart's values: in JSON each is CEL, too."""
    for name in map(to_camel, Policy.model_fields):
        yield f"  - name: {name}\n    expression: {{{{ .Values.policy.{name} | toJson | quote }}}}\n"


def _asked(name: str) -> str:
    return to_camel(f"asked_{name}")


def _validation(refusal: _Refusal) -> dict[str, str]:
    return {
        "expression": f"size(variables.{refusal.name}) == 0",
        "message": "refused by values of the chart: see policy",  # where the other one is too long
        "messageExpression": f"'{refusal.message}'.format([{', '.join(refusal.places)}])",
        "reason": "Forbidden",
    }


def _binding(model: type[Benchmark]) -> str:
    plural = model.KIND.plural
    return _HEAD.format(kind="ValidatingAdmissionPolicyBinding", plural=plural) + _BINDING.format(plural=plural)


def _indented(value: Any) -> str:
    return "".join(f"  {line}\n" for line in to_yaml(value).splitlines())
