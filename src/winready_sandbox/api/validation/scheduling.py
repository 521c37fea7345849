"""Where pods go: affinity, tolerations, spreading and gates."""

from __future__ import annotations

from winready_sandbox.api.errors import duplicate, forbidden_field, invalid, not_supported, required
from winready_sandbox.api.validation.formats import Errors, at, label_value, qualified_name, selector
from winready_sandbox.api.validation.reading import Object, children, items, section

_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"


def gates(spec: Object, path: str) -> Errors:
    """What a pod waits for before it is ready, and before it is scheduled."""
    for i, gate in enumerate(children(spec, "readinessGates")):
        kind = str(gate.get("conditionType") or "")
        yield from at(f"{path}.readinessGates[{i}].conditionType", kind, qualified_name(kind))
    names: set[str] = set()
    for i, gate in enumerate(children(spec, "schedulingGates")):
        name = str(gate.get("name") or "")
        here = f"{path}.schedulingGates[{i}]"
        yield from at(here, name, qualified_name(name))
        if name in names:
            yield duplicate(here, name)
        names.add(name)


def spread(spec: Object, path: str) -> Errors:
    """How pods are spread over domains."""
    actions = ["DoNotSchedule", "ScheduleAnyway"]
    for i, constraint in enumerate(children(spec, "topologySpreadConstraints")):
        here = f"{path}.topologySpreadConstraints[{i}]"
        skew = constraint.get("maxSkew") or 0
        if isinstance(skew, int) and skew <= 0:
            yield invalid(f"{here}.maxSkew", skew, "must be greater than zero")
        if not constraint.get("topologyKey"):
            yield required(f"{here}.topologyKey", "can not be empty")
        if constraint.get("whenUnsatisfiable") not in actions:
            yield not_supported(f"{here}.whenUnsatisfiable", constraint.get("whenUnsatisfiable") or "", actions)
        yield from selector(constraint.get("labelSelector"), f"{here}.labelSelector")


def affinity(value: Object, path: str) -> Errors:
    """Nodes and pods that a pod wants to be near to or far from."""
    node = section(value, "nodeAffinity")
    here = f"{path}.nodeAffinity"
    if isinstance(node.get(_REQUIRED), dict):
        yield from node_selector(node[_REQUIRED], f"{here}.{_REQUIRED}")
    for i, term in enumerate(children(node, _PREFERRED)):
        yield from _weight(term, f"{here}.{_PREFERRED}[{i}]")
        yield from _node_term(section(term, "preference"), f"{here}.{_PREFERRED}[{i}].preference", strict=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = section(value, kind)
        here = f"{path}.{kind}"
        for i, term in enumerate(children(rules, _REQUIRED)):
            yield from _pod_term(term, f"{here}.{_REQUIRED}[{i}]")
        for i, weighted in enumerate(children(rules, _PREFERRED)):
            yield from _weight(weighted, f"{here}.{_PREFERRED}[{i}]")
            yield from _pod_term(section(weighted, "podAffinityTerm"), f"{here}.{_PREFERRED}[{i}].podAffinityTerm")


def _weight(term: Object, here: str) -> Errors:
    weight = term.get("weight") or 0
    if not isinstance(weight, int) or not 1 <= weight <= 100:
        yield invalid(f"{here}.weight", weight, _WEIGHT)


def node_selector(value: Object, path: str, strict: bool = True) -> Errors:
    """Nodes by their labels and fields; ``strict`` wants values that labels can have."""
    here = f"{path}.nodeSelectorTerms"
    terms = items(value, "nodeSelectorTerms")
    if not terms:
        yield required(here, "must have at least one node selector term")
    for i, term in enumerate(terms):
        yield from _node_term(term if isinstance(term, dict) else {}, f"{here}[{i}]", strict)


def _node_term(term: Object, here: str, strict: bool) -> Errors:
    for j, expression in enumerate(children(term, "matchExpressions")):
        yield from _node_expression(expression, f"{here}.matchExpressions[{j}]", strict)
    for j, wanted in enumerate(children(term, "matchFields")):
        yield from _node_field(wanted, f"{here}.matchFields[{j}]")


def _node_field(wanted: Object, here: str) -> Errors:
    if wanted.get("operator") not in ("In", "NotIn"):
        yield invalid(f"{here}.operator", wanted.get("operator") or "", "not a valid selector operator")
    elif len(items(wanted, "values")) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{here}.values", detail)
    if wanted.get("key") != "metadata.name":
        yield invalid(f"{here}.key", wanted.get("key") or "", "not a valid field selector key")


def _node_expression(expression: Object, here: str, strict: bool) -> Errors:
    operator, values = expression.get("operator"), items(expression, "values")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{here}.values", detail)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{here}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{here}.operator", operator or "", "not a valid selector operator")
    yield from at(f"{here}.key", expression.get("key", ""), qualified_name(str(expression.get("key", ""))))
    if strict:
        for i, value in enumerate(values):
            yield from at(f"{here}.values[{i}]", value, label_value(str(value)))


def _pod_term(term: Object, here: str) -> Errors:
    yield from selector(term.get("labelSelector"), f"{here}.labelSelector")
    key = str(term.get("topologyKey") or "")
    if not key:
        yield required(f"{here}.topologyKey", "can not be empty")
    yield from at(f"{here}.topologyKey", key, qualified_name(key))


def taint_effect(effect: object, field: str) -> Errors:
    """What a taint does."""
    if effect not in _EFFECTS:
        yield not_supported(field, effect, _EFFECTS)


def tolerations(value: object, path: str) -> Errors:
    """Tolerations of a pod."""
    for i, item in enumerate(children({"items": value}, "items")):
        here = f"{path}[{i}]"
        key, operator, own = item.get("key") or "", item.get("operator") or "", str(item.get("value") or "")
        if key:
            yield from at(f"{here}.key", key, qualified_name(str(key)))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{here}.operator", operator, detail)
        if item.get("tolerationSeconds") is not None and item.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{here}.effect", item.get("effect") or "", detail)
        if operator in ("", "Equal"):
            wrong = ";".join(label_value(own))
            if wrong:
                yield invalid(f"{here}.operator", own, wrong)
        elif operator == "Exists":
            if own:
                yield invalid(f"{here}.operator", own, "value must be empty when `operator` is 'Exists'")
        else:
            yield not_supported(f"{here}.operator", operator, ["Equal", "Exists"])
        if item.get("effect"):
            yield from taint_effect(item["effect"], f"{here}.effect")
