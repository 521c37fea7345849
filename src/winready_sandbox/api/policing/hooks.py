"""Admission webhooks and policies: objects say what they are asked about, a function what they answer.

The embedded API server calls nobody: whoever builds the cluster says what the program behind a service answers. A
webhook whose service is not there, or answers nothing, fails as it would. Policies are evaluated, as far as `cel` knows
the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from winready_sandbox.api.errors import ApiError, forbidden
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing import mutations
from winready_sandbox.api.policing.cel import CelError, evaluate
from winready_sandbox.api.registry import Admission, Registry
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.selectors import matches_labels, selector_requirements

GROUP = "admissionregistration.k8s.io"
CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
"""Status codes by the reason that a validation names."""
Review = Callable[[Admission], str]
"""Why an object is refused, or nothing; a mutating one may change it."""


class Denied(Exception):
    """A review that ends with a status code of its own."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Reviewers:
    """Everybody who is asked about objects on their way in."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.services: dict[tuple[str, ...], Review] = {}
        """What the program behind a service answers, by namespace and name of the service, or also by the path."""

    def mutate(self, admission: Admission) -> None:
        """Ask mutating policies, then mutating webhooks."""
        for spec, binding in self._bound("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", admission):
            mutations.mutate(spec, binding, partial(self._names, spec, admission), admission)
        self._ask(admission, "mutatingwebhookconfigurations")

    def validate(self, admission: Admission) -> None:
        """Ask policies, then validating webhooks."""
        self._policies(admission)
        self._ask(admission, "validatingwebhookconfigurations")

    def _ask(self, admission: Admission, kind: str) -> None:
        for configuration in self._stored(kind):
            for webhook in configuration.get("webhooks") or ():
                if self._concerns(webhook, webhook.get("rules") or [], admission):
                    self._call(webhook, admission)

    def _call(self, webhook: Object, admission: Admission) -> None:
        service = webhook["clientConfig"].get("service")
        if service is None:
            return
        where = (service["namespace"], service["name"])
        review = self.services.get((*where, service.get("path") or "/")) or self.services.get(where)
        if review is not None:
            denied = f'admission webhook "{webhook["name"]}" denied the request'
            try:
                refusal = review(admission)
            except Denied as denial:
                raise ApiError(denial.code, "", f"{denied}: {denial.words}") from None
            if refusal:
                raise ApiError(403, "Forbidden", f"{denied}: {refusal}")
            return
        if webhook.get("failurePolicy") == "Ignore":
            return
        found = self._registry.bucket(self._registry.resources.find("services")).get(where)
        problem = f'service "{where[1]}" not found'
        if found is not None:
            problem = f"dial tcp {found.obj['spec'].get('clusterIP')}:{service['port']}: connect: connection refused"
        url = f"https://{where[1]}.{where[0]}.svc:{service['port']}{service.get('path') or '/'}"
        url += f"?timeout={webhook['timeoutSeconds']}s"
        cause = f'failed calling webhook "{webhook["name"]}": failed to call webhook: Post "{url}": {problem}'
        raise ApiError(500, "InternalError", f"Internal error occurred: {cause}", {"causes": [{"message": cause}]})

    def _policies(self, admission: Admission) -> None:
        kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        for policy, binding in self._bound(*kinds, admission):
            for words, reason in self._objections(policy, admission):
                self._act(admission, binding, words, reason)

    def _bound(self, kind: str, bindings: str, admission: Admission) -> Iterator[tuple[Object, Object]]:
        """The policies that are bound and concern an object, with their bindings."""
        bound = self._stored(bindings)
        policies = {each["metadata"]["name"]: each["spec"] for each in self._stored(kind)} if bound else {}
        for binding in bound:
            policy = policies.get(binding["spec"].get("policyName", ""))
            match = (policy or {}).get("matchConstraints") or {}
            if policy is not None and self._concerns(match, match.get("resourceRules") or [], admission):
                yield policy, binding

    def _objections(self, policy: Object, admission: Admission) -> Iterator[tuple[str, str]]:
        """What a policy has against an object, in words, with the reason that its answer states."""
        names = self._names(policy, admission)
        strict = policy.get("failurePolicy", "Fail") == "Fail"
        try:
            if not all(evaluate(each["expression"], names) for each in policy.get("matchConditions") or ()):
                return
        except CelError as error:
            if strict:
                yield f"match condition resulted in error: {error}", "Invalid"
            return
        for validation in policy.get("validations") or ():
            expression, reason = validation["expression"].strip(), validation.get("reason") or "Invalid"
            try:
                if evaluate(expression, names) is not True:
                    yield validation.get("message") or f"failed expression: {expression}", reason
            except CelError as error:
                if strict:
                    yield f"expression '{expression}' resulted in error: {error}", reason

    def _names(self, policy: Object, admission: Admission) -> Mapping[str, Any]:
        """What the expressions of a policy may speak of."""
        resource = admission.resource
        said = {"apiVersion": resource.api_version, "kind": resource.kind}
        namespace = self._registry.bucket(self._registry.resources.find("namespaces")).get(("", admission.namespace))
        names: dict[str, Any] = {
            "object": {**said, **admission.obj} if admission.obj else None,
            "oldObject": {**said, **admission.old} if admission.old else None,
            "namespaceObject": namespace.obj if namespace else None,
            "params": None,
            "request": {
                "operation": admission.operation,
                "name": admission.name,
                "namespace": admission.namespace,
                "subResource": admission.subresource,
                "dryRun": admission.dry_run,
                "userInfo": {"username": admission.user.name, "groups": list(admission.user.groups)},
            },
        }
        names["variables"] = _Variables(policy.get("variables") or [], names)
        return names

    def _act(self, admission: Admission, binding: Object, words: str, reason: str) -> None:
        policy, bound = binding["spec"]["policyName"], binding["metadata"]["name"]
        actions = binding["spec"].get("validationActions") or ["Deny"]
        if "Warn" in actions:
            admission.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{bound}': {words}"
            )
        if "Deny" in actions:
            words = f"ValidatingAdmissionPolicy '{policy}' with binding '{bound}' denied request: {words}"
            error = forbidden(admission.resource.plural, admission.resource.group, admission.name, words)
            error.code, error.reason = CODES[reason], reason
            error.details["causes"] = [{"message": words}]
            raise error

    def _stored(self, plural: str) -> list[Object]:
        return [entry.obj for entry in self._registry.store.bucket((GROUP, plural)).select()]

    def _concerns(self, asked: Object, rules: list[Object], admission: Admission) -> bool:
        if not any(_matches(rule, admission) for rule in rules):
            return False
        obj = admission.obj or admission.old or {}
        if not _selected(asked.get("objectSelector"), obj):
            return False
        if admission.resource.storage == ("", "namespaces"):
            return _selected(asked.get("namespaceSelector"), obj)
        if not admission.namespace:
            return True
        namespace = self._registry.bucket(self._registry.resources.find("namespaces")).get(("", admission.namespace))
        return _selected(asked.get("namespaceSelector"), namespace.obj if namespace else {})


class _Variables(Mapping[str, Any]):
    """The variables of a policy: each is evaluated when it is asked for, once."""

    def __init__(self, said: list[Object], names: Mapping[str, Any]) -> None:
        self._said = {each["name"]: each["expression"] for each in said}
        self._names = names
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = evaluate(self._said[name], self._names)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)


def _selected(selector: Object | None, obj: Object) -> bool:
    return matches_labels(selector_requirements(selector or {}), (obj.get("metadata") or {}).get("labels"))


def _matches(rule: Object, admission: Admission) -> bool:
    resource: Resource = admission.resource
    wanted = f"{resource.plural}/{admission.subresource}" if admission.subresource else resource.plural
    return (
        _among(rule.get("operations"), admission.operation)
        and _among(rule.get("apiGroups"), resource.group)
        and any(_same(text, wanted) for text in rule.get("resources") or ())
    )


def _among(listed: list[str] | None, value: str) -> bool:
    return "*" in (listed or ()) or value in (listed or ())


def _same(pattern: str, wanted: str) -> bool:
    if pattern in ("*/*", wanted):
        return True
    plural, _, below = wanted.partition("/")
    return (pattern == "*" and not below) or (bool(below) and pattern in (f"{plural}/*", f"*/{below}"))
