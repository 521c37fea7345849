"""MutatingAdmissionPolicy: what a policy of the cluster changes about objects on their way in."""

from __future__ import annotations

from collections.abc import Callable

from winready_sandbox.api.errors import ApiError, forbidden
from winready_sandbox.api.objects import Object
from winready_sandbox.api.patches.jsonpatch import json_patch
from winready_sandbox.api.policing.cel import NotUnderstood, evaluate
from winready_sandbox.api.registry import Admission

Concerned = Callable[[Object, Admission], bool]


def mutate(policies: list[Object], bindings: list[Object], concerned: Concerned, admission: Admission) -> None:
    """Let every policy that is bound change the object; a failure counts as the policy says."""
    by_name = {policy["metadata"]["name"]: policy["spec"] for policy in policies}
    for binding in bindings:
        spec = by_name.get(binding["spec"].get("policyName", ""))
        if spec is None or not concerned(spec.get("matchConstraints") or {}, admission):
            continue
        try:
            _apply(spec, admission)
        except (NotUnderstood, ApiError) as error:
            if spec.get("failurePolicy") == "Ignore":
                continue
            words = f"policy '{binding['spec']['policyName']}' with binding '{binding['metadata']['name']}' "
            words += f"denied request: {error}"
            raise forbidden(admission.resource.plural, admission.resource.group, admission.name, words) from None


def _apply(spec: Object, admission: Admission) -> None:
    scope = {"object": admission.obj, "oldObject": admission.old, "request": {"operation": admission.operation}}
    for condition in spec.get("matchConditions") or ():
        if evaluate(condition["expression"], **scope) is not True:
            return
    for mutation in spec.get("mutations") or ():
        patch = mutation.get("jsonPatch")
        if patch is None:
            raise NotUnderstood("only patches of the type JSONPatch are understood here")
        changed = json_patch(admission.obj, evaluate(patch["expression"], **scope))
        admission.obj.clear()
        admission.obj.update(changed)
