"""Admission webhooks and policies: objects say what they are asked about, a function what webhooks answer.

The embedded API server calls nobody: whoever builds the cluster says what the program behind a service answers. A
webhook whose service is not there, or answers nothing, fails as it would. Of validating policies only the plain
``false`` is understood, of mutating ones what `cel` reads.
"""

from __future__ import annotations

from collections.abc import Callable

from winready_sandbox.api.errors import ApiError, forbidden
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing import mutations
from winready_sandbox.api.registry import Admission, Registry
from winready_sandbox.api.resources import Resource
from winready_sandbox.api.selectors import matches_labels, selector_requirements

GROUP = "admissionregistration.k8s.io"
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
        if bindings := self._stored("mutatingadmissionpolicybindings"):
            policies = self._stored("mutatingadmissionpolicies")
            mutations.mutate(policies, bindings, self._constrained, admission)
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
        bindings = self._stored("validatingadmissionpolicybindings")
        if not bindings:
            return
        policies = {each["metadata"]["name"]: each["spec"] for each in self._stored("validatingadmissionpolicies")}
        for binding in bindings:
            policy = policies.get(binding["spec"].get("policyName", ""))
            if policy is None or not self._constrained(policy.get("matchConstraints") or {}, admission):
                continue
            for validation in policy.get("validations") or ():
                if validation.get("expression", "").strip() == "false":
                    self._deny(admission, binding, validation)

    def _deny(self, admission: Admission, binding: Object, validation: Object) -> None:
        text = validation.get("message") or f"failed expression: {validation['expression']}"
        words = f"ValidatingAdmissionPolicy '{binding['spec']['policyName']}' with binding "
        words += f"'{binding['metadata']['name']}' denied request: {text}"
        error = forbidden(admission.resource.plural, admission.resource.group, admission.name, words)
        error.code, error.reason = 422, validation.get("reason") or "Invalid"
        error.details["causes"] = [{"message": words}]
        raise error

    def _constrained(self, match: Object, admission: Admission) -> bool:
        return self._concerns(match, match.get("resourceRules") or [], admission)

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
