"""MutatingAdmissionPolicy: what a policy of the cluster changes about objects on their way in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from winready_sandbox.api.errors import ApiError, forbidden
from winready_sandbox.api.objects import Object
from winready_sandbox.api.patches.jsonpatch import json_patch
from winready_sandbox.api.policing.cel import CelError, evaluate
from winready_sandbox.api.registry import Admission

Names = Callable[[], Mapping[str, Any]]
"""What its expressions may speak of, at this moment: each patch changes the object for the next."""


def mutate(spec: Object, binding: Object, names: Names, admission: Admission) -> None:
    """Let a policy change the object; a failure counts as the policy says."""
    try:
        _apply(spec, names, admission)
    except (CelError, ApiError) as error:
        if spec.get("failurePolicy") == "Ignore":
            return
        words = f"policy '{binding['spec']['policyName']}' with binding '{binding['metadata']['name']}' "
        words += f"denied request: {error}"
        raise forbidden(admission.resource.plural, admission.resource.group, admission.name, words) from None


def _apply(spec: Object, names: Names, admission: Admission) -> None:
    if not all(evaluate(each["expression"], names()) for each in spec.get("matchConditions") or ()):
        return
    for mutation in spec.get("mutations") or ():
        patch = mutation.get("jsonPatch")
        if patch is None:
            raise CelError("only patches of the type JSONPatch are understood here")
        operations = evaluate(patch["expression"], names())
        if not isinstance(operations, list):
            raise CelError("must evaluate to a list of JSONPatch")
        changed = json_patch(admission.obj, operations)
        admission.obj.clear()
        admission.obj.update(changed)
