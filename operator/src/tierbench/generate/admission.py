"""The policy as ValidatingAdmissionPolicies of the chart. They refuse specs that the operator would refuse."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from tierbench.api import policy
from tierbench.api.benchmark import EMPTY_LIST, Benchmark
from tierbench.api.model import GROUP, VERSION
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.policy import OTHER_NAMESPACES, Policy
from tierbench.api.schema import object_schema
from tierbench.domain.fields import MOST_LABELS
from tierbench.generate.schemas import NOTICE, to_yaml
from tierbench.kinds.registry import BENCHMARKS

UNREADABLE_ACCOUNT: Final = (
    "you may not read all of the Secrets [%s], which external brokers would get: name others, or ask an "
    "administrator for permission to get them"
)
UNREADABLE_CONFIG_MAP: Final = (
    "you may not read all of the ConfigMaps [%s], whose content clients would use: name others, or ask an "
    "administrator for permission to get them"
)


@dataclass(frozen=True)
class _Rule:
    """A validation of the policy.

    `refused` is the CEL expression that selects the refused ones of what a benchmark asks for in `asked`. `name` is the
    variable with its result. `places` are the arguments of the message.
    """

    name: str
    asked: str
    refused: str
    message: str
    places: tuple[str, ...]


def _is_of(networks: str, names: str) -> str:
    """Returns CEL for whether the host of an address `a` is in one of the networks, or has one of the names."""
    host = "[a.substring(0, a.lastIndexOf(':')).lowerAscii().replace('[', '').replace(']', '')]"
    return (
        f"{host}.exists(h, isIP(h) ? variables.{networks}.exists(n, cidr(n).containsIP(h))"
        f" : variables.{names}.exists(n, h == n || n.startsWith('*.') && h.endsWith(n.substring(1))))"
    )


def _unreadable(resource: str) -> str:
    read = f"authorizer.group('').resource('{resource}').namespace(request.namespace).name(n).check('get')"
    return f"filter(n, !{read}.allowed())"


_RUN_POLICY: Final = "runPolicy"
_DISGUISED: Final = "a.startsWith('[') && !isIP(a.substring(1, a.lastIndexOf(':') - 1))"
_RULES: Final = (
    _Rule(
        "refusedAccess",
        "access",
        "filter(a, !(a in variables.access))",
        policy.ACCESS_REFUSED,
        ("variables.refusedAccess[0]", "variables.access.join(', ')"),
    ),
    _Rule(
        "refusedClasses",
        "node_class_names",
        "filter(c, !(c in variables.classes))",
        policy.NODE_CLASS_REFUSED,
        ("variables.refusedClasses[0]", "request.namespace", "variables.classes.join(', ')"),
    ),
    _Rule(
        "refusedPaths",
        "host_paths",
        "filter(p, !variables.hostPaths.exists(f, (p + '/').startsWith(f + '/')))",
        policy.HOST_PATH_REFUSED,
        ("variables.refusedPaths[0]", "variables.hostPaths.join(', ')"),
    ),
    _Rule(
        "refusedAddresses",
        "addresses",
        f"filter(a, {_DISGUISED} || {_is_of('networks', 'refusedNames')})",
        policy.ADDRESS_REFUSED,
        ("variables.refusedAddresses[0]",),
    ),
    _Rule(
        "unlistedAddresses",
        "addresses",
        f"filter(a, size(variables.allowed) > 0 && !{_is_of('allowedNetworks', 'allowedNames')})",
        policy.ADDRESS_UNLISTED,
        ("variables.unlistedAddresses[0]", "variables.allowed.join(', ')"),
    ),
    _Rule(
        "unencryptedSecrets",
        "plain_secrets",
        "filter(s, !variables.plainSecrets)",
        policy.UNENCRYPTED,
        ("variables.unencryptedSecrets[0]",),
    ),
    _Rule("refusedLinks", "links", "filter(l, !variables.links)", policy.LINK_REFUSED, ("variables.refusedLinks[0]",)),
    # The message cannot name the unreadable one: message expressions have no authorizer.
    _Rule(
        "unreadableSecrets",
        "secrets",
        _unreadable("secrets"),
        UNREADABLE_ACCOUNT,
        ("variables.askedSecrets.join(', ')",),
    ),
    _Rule(
        "unreadableConfigMaps",
        "config_maps",
        _unreadable("configmaps"),
        UNREADABLE_CONFIG_MAP,
        ("variables.askedConfigMaps.join(', ')",),
    ),
)
# Variables derived from values. The parameter of the policy is the Service of the API server.
_DERIVED: Final = {
    "networks": "variables.refusedNetworks + params.spec.clusterIPs.map(a, a + (ip(a).family() == 4 ? '/32' : '/128'))",
    "allowed": "variables.allowedNetworks + variables.allowedNames",
    "classes": "request.namespace in variables.nodeClassNames ? variables.nodeClassNames[request.namespace]"
    f" : '{OTHER_NAMESPACES}' in variables.nodeClassNames ? variables.nodeClassNames['{OTHER_NAMESPACES}']"
    " : variables.askedNodeClassNames",
}

MOST_ANNOTATION_CHARACTERS: Final = 64 << 10
_MOST_FINALIZERS: Final = 16
_METADATA: Final = "metadata"


def _of_both(name: str, expression: str) -> dict[str, str]:
    """Returns the variables with a size of metadata, and of the metadata before. Objects may keep what they have."""
    before = expression.replace("object.", "oldObject.")
    return {name: expression, f"{name}Before": f"oldObject == null ? 0 : {before}"}


_SIZES: Final = {
    **_of_both("labels", "has(object.metadata.labels) ? size(object.metadata.labels) : 0"),
    **_of_both("finalizers", "has(object.metadata.finalizers) ? size(object.metadata.finalizers) : 0"),
    **_of_both(
        "annotations",
        "has(object.metadata.annotations) ? object.metadata.annotations.map(a, "
        "size(a) + size(object.metadata.annotations[a])).sum() : 0",
    ),
}
_BOUNDS: Final = {
    "labels": (MOST_LABELS, "there are %d labels, and at most %d are allowed: remove some"),
    "finalizers": (_MOST_FINALIZERS, "there are %d finalizers, and at most %d are allowed: remove some"),
    "annotations": (
        MOST_ANNOTATION_CHARACTERS,
        "together they have %d characters, and at most %d are allowed: keep large texts in a ConfigMap",
    ),
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
_PARAMETER: Final = """\
  # The Service of the API server. No external server may have its addresses.
  paramRef:
    name: kubernetes
    namespace: default
    parameterNotFoundAction: Deny
"""
_BINDING: Final = """\
  policyName: {{{{ .Release.Namespace }}}}.{{{{ include "tierbench.fullname" . }}}}.{plural}
  validationActions: [Deny]
{parameter}\
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
    """Returns a policy and its binding for each kind of benchmark, and one that bounds the metadata of objects."""
    notice = "{{- /* " + NOTICE.format(source="generate/admission.py") + " */ -}}\n"
    bodies = "".join(_policy(model) + _binding(model.KIND.plural, _PARAMETER) for model in BENCHMARKS.values())
    bodies += _metadata_policy() + _binding(_METADATA)
    return f"{notice}{{{{- if .Values.policy.admission }}}}\n{bodies}{{{{- end }}}}\n"


def _policy(model: type[Benchmark]) -> str:
    """Returns the policy of a kind.

    It does not check updates that change nothing but the run policy or metadata. So a benchmark can be suspended after
    the policy has become stricter, and users and programs that may not read its Secrets can do so.
    """
    plural = model.KIND.plural
    operations = ["CREATE", "UPDATE"]
    rule = {"apiGroups": [GROUP], "apiVersions": [VERSION], "operations": operations, "resources": [plural]}
    asked = {name: expression for name, expression in asdict(model.POLICY_SUBJECT).items() if expression != EMPTY_LIST}
    rules = [rule for rule in _RULES if rule.asked in asked]
    variables = {
        **{_asked(name): expression for name, expression in asked.items()},
        **_DERIVED,
        **{rule.name: f"variables.{_asked(rule.asked)}.{rule.refused}" for rule in rules},
    }
    fixed = {
        "failurePolicy": "Fail",
        "paramKind": {"apiVersion": "v1", "kind": "Service"},
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "spec-changed", "expression": _spec_changed(model)}],
        "validations": [_validation(rule) for rule in rules],
    }
    values = "".join(_of_values())
    named = [{"name": name, "expression": expression} for name, expression in variables.items()]
    head = _HEAD.format(kind="ValidatingAdmissionPolicy", plural=plural)
    return f"{head}{_indented(fixed)}  variables:\n{values}{_indented(named)}"


def _metadata_policy() -> str:
    """Returns the policy of metadata, which Kubernetes hardly bounds. Lists of it take memory and space in etcd."""
    kinds = (*(model.KIND for model in BENCHMARKS.values()), NodeClass.KIND, PlacementAdvice.KIND)
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural for kind in kinds],
    }
    fixed = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {
                "expression": f"variables.{name} <= {most} || variables.{name} <= variables.{name}Before",
                "messageExpression": f"'metadata.{name}: {message}'.format([variables.{name}, {most}])",
                "reason": "Forbidden",
            }
            for name, (most, message) in _BOUNDS.items()
        ],
        "variables": [{"name": name, "expression": expression} for name, expression in _SIZES.items()],
    }
    return _HEAD.format(kind="ValidatingAdmissionPolicy", plural=_METADATA) + _indented(fixed)


def _spec_changed(model: type[Benchmark]) -> str:
    """Returns CEL for whether the spec is new, or has changed in more than its run policy."""
    names = object_schema(model)["properties"]["spec"]["properties"]
    changes = (f"object.spec.?{name} != oldObject.spec.?{name}" for name in names if name != _RUN_POLICY)
    return " || ".join(("oldObject == null", *changes))


def _of_values() -> Iterator[str]:
    """Yields a variable for each value of the policy. Its JSON is also CEL."""
    for name in map(to_camel, Policy.model_fields):
        yield f"  - name: {name}\n    expression: {{{{ .Values.policy.{name} | toJson | quote }}}}\n"


def _asked(name: str) -> str:
    return to_camel(f"asked_{name}")


def _validation(rule: _Rule) -> dict[str, str]:
    return {
        "expression": f"size(variables.{rule.name}) == 0",
        "message": "refused by values of the chart: see policy",  # used if the other message is too long
        "messageExpression": f"'{rule.message}'.format([{', '.join(rule.places)}])",
        "reason": "Forbidden",
    }


def _binding(plural: str, parameter: str = "") -> str:
    head = _HEAD.format(kind="ValidatingAdmissionPolicyBinding", plural=plural)
    return head + _BINDING.format(plural=plural, parameter=parameter)


def _indented(value: Any) -> str:
    return "".join(f"  {line}\n" for line in to_yaml(value).splitlines())
