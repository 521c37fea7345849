"""Jobs and CronJobs: how often, how many, and what becomes of failures."""

from __future__ import annotations

import re

from winready_sandbox.api.errors import FieldError, duplicate, invalid, not_supported, required, too_long, too_many
from winready_sandbox.api.validation.formats import (
    Errors,
    at,
    dns_label,
    dns_subdomain,
    immutable,
    matches,
    nonnegative,
    qualified_name,
    selector,
)
from winready_sandbox.api.validation.pods import template
from winready_sandbox.api.validation.reading import Object, children, items, section

_MISMATCH = "`selector` does not match template `labels`"
_ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"]
_STATUSES = ["False", "True", "Unknown"]
_MOST_RULES, _MOST_CODES, _MOST_INDEXED, _LONGEST_MANAGER = 20, 255, 100_000, 63
_MANY, _MOST_AT_ONCE = 100_000, 10_000
_LONGEST_CRON_JOB = 52


def job(obj: Object, old: Object | None, minor: int) -> Errors:
    """A Job."""
    spec, name = section(obj, "spec"), str(section(obj, "metadata").get("name") or "")
    yield from _job_spec(spec, "spec", minor)
    wanted = spec.get("selector")
    if not isinstance(wanted, dict):
        yield required("spec.selector")
    yield from selector(wanted, "spec.selector")
    found = section(section(spec, "template"), "metadata").get("labels")
    if not matches(wanted, found):
        yield invalid("spec.template.metadata.labels", found, _MISMATCH)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and isinstance(completions, int) and completions > 0 and old is None:
        longest = f"{name}-{completions - 1}"
        if any(True for _ in dns_label(longest)):
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            yield invalid("metadata.name", name, detail)
    if old is not None:
        yield from _changes(spec, section(old, "spec"))


def _changes(spec: Object, before: Object) -> Errors:
    if spec.get("completionMode") != "Indexed":
        yield from immutable(spec.get("completions"), before.get("completions"), "spec.completions")
    yield from immutable(spec.get("selector"), before.get("selector"), "spec.selector")
    if not before.get("suspend"):
        yield from immutable(spec.get("template"), before.get("template"), "spec.template")
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from immutable(spec.get(name), before.get(name), f"spec.{name}")


def _job_spec(spec: Object, path: str, minor: int) -> Errors:
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    for name in (*numbers, "backoffLimitPerIndex", "maxFailedIndexes"):
        yield from nonnegative(spec.get(name), f"{path}.{name}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _manager(spec.get("managedBy"), f"{path}.managedBy")
    yield from _mode(spec, path)
    if isinstance(spec.get("podFailurePolicy"), dict):
        yield from _failures(spec, f"{path}.podFailurePolicy")
    if isinstance(spec.get("successPolicy"), dict):
        yield from _successes(spec, f"{path}.successPolicy")
    replacement = spec.get("podReplacementPolicy")
    allowed = ["Failed"] if spec.get("podFailurePolicy") is not None else ["Failed", "TerminatingOrFailed"]
    if replacement is not None and replacement not in allowed:
        yield not_supported(f"{path}.podReplacementPolicy", replacement, allowed)
    yield from template(section(spec, "template"), f"{path}.template", minor)
    policy = section(section(spec, "template"), "spec").get("restartPolicy", "Always")
    here = f"{path}.template.spec.restartPolicy"
    if policy == "Always":
        yield required(here, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(here, policy, ["OnFailure", "Never"])
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(here, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _manager(name: object, field: str) -> Errors:
    if name is None:
        return
    domain, slash, path = str(name).partition("/")
    if not name:
        yield required(field)
    elif not slash or not domain or not path:
        yield invalid(field, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from at(field, domain, dns_subdomain(domain))
    if len(str(name)) > _LONGEST_MANAGER:
        yield too_long(field, _LONGEST_MANAGER)


def _mode(spec: Object, path: str) -> Errors:
    mode = spec.get("completionMode", "NonIndexed")
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if mode not in ("NonIndexed", "Indexed"):
        yield not_supported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"])
    if mode == "NonIndexed":
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
    if mode != "Indexed":
        return
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if isinstance(parallelism, int) and parallelism > _MOST_INDEXED:
        detail = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
        yield invalid(f"{path}.parallelism", parallelism, detail)
    if isinstance(failed, int):
        if isinstance(completions, int) and failed > completions:
            yield invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
        if failed > _MOST_INDEXED:
            yield invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MOST_INDEXED}")
    if isinstance(completions, int) and completions > _MANY and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            yield required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY}")
        for name in ("parallelism", "maxFailedIndexes"):
            value = spec.get(name)
            if isinstance(value, int) and value > _MOST_AT_ONCE:
                detail = f"must be less than or equal to {_MOST_AT_ONCE} when completions are above {_MANY}"
                yield invalid(f"{path}.{name}", value, f"{detail} and used with backoff limit per index")


def _listed(known: list[str]) -> str:
    return "valid values: [" + " ".join(f'"{each}"' for each in known) + "]"


def _failures(spec: Object, path: str) -> Errors:
    rules = children(section(spec, "podFailurePolicy"), "rules")
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    pod = section(section(spec, "template"), "spec")
    names = {str(each.get("name")) for kind in ("containers", "initContainers") for each in children(pod, kind)}
    for i, rule in enumerate(rules):
        here, action = f"{path}.rules[{i}]", rule.get("action")
        if not action:
            yield required(f"{here}.action", _listed(_ACTIONS))
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                yield invalid(f"{here}.action", action, "requires the backoffLimitPerIndex to be set")
        elif action not in _ACTIONS:
            yield not_supported(f"{here}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), children(rule, "onPodConditions")
        if isinstance(codes, dict):
            yield from _exit_codes(codes, f"{here}.onExitCodes", names)
        yield from _conditions(conditions, f"{here}.onPodConditions")
        if codes is not None and conditions:
            yield _unsaid(here, "specifying both OnExitCodes and OnPodConditions is not supported")
        if codes is None and not conditions:
            yield _unsaid(here, "specifying one of OnExitCodes and OnPodConditions is required")


def _unsaid(field: str, detail: str) -> FieldError:
    """A mistake in a whole, which is not repeated."""
    return FieldError(field, f"Invalid value: {detail}", "FieldValueInvalid")


def _exit_codes(codes: Object, path: str, names: set[str]) -> Errors:
    operator = codes.get("operator")
    values = [value for value in items(codes, "values") if isinstance(value, int)]
    if not operator:
        yield required(f"{path}.operator", _listed(["In", "NotIn"]))
    elif operator not in ("In", "NotIn"):
        yield not_supported(f"{path}.operator", operator, ["In", "NotIn"])
    name = codes.get("containerName")
    if name is not None and str(name) not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", name, detail)
    if not values:
        yield invalid(f"{path}.values", None, "at least one value is required")
    elif len(values) > _MOST_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_CODES)
    seen: set[object] = set()
    for i, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{path}.values[{i}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{path}.values[{i}]", value)
        seen.add(value)
    if values != sorted(values):
        yield invalid(f"{path}.values", values, "must be ordered")


def _conditions(conditions: list[Object], path: str) -> Errors:
    if len(conditions) > _MOST_RULES:
        yield too_many(path, len(conditions), _MOST_RULES)
    for i, pattern in enumerate(conditions):
        here, kind, status = f"{path}[{i}]", str(pattern.get("type") or ""), pattern.get("status")
        yield from at(f"{here}.type", kind, qualified_name(kind))
        if not status:
            yield required(f"{here}.status", _listed(_STATUSES))
        elif status not in _STATUSES:
            yield not_supported(f"{here}.status", status, _STATUSES)


def _successes(spec: Object, path: str) -> Errors:
    policy = section(spec, "successPolicy")
    if spec.get("completionMode") != "Indexed":
        told = [
            {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
            for rule in children(policy, "rules")
        ]
        yield invalid(path, {"Rules": told or None}, "requires indexed completion mode")
        return
    rules, completions = children(policy, "rules"), spec.get("completions")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{path}.rules", detail)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for i, rule in enumerate(rules):
        here, count = f"{path}.rules[{i}]", rule.get("succeededCount")
        if count is None and rule.get("succeededIndexes") is None:
            yield required(here, "at least one of succeededCount or succeededIndexes must be specified")
        yield from nonnegative(count, f"{here}.succeededCount")
        if isinstance(count, int) and isinstance(completions, int) and count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            yield invalid(f"{here}.succeededCount", count, detail)


def cron_job(obj: Object, old: Object | None, minor: int) -> Errors:
    """A CronJob."""
    spec, name = section(obj, "spec"), str(section(obj, "metadata").get("name") or "")
    schedule = str(spec.get("schedule") or "")
    if not schedule:
        yield required("spec.schedule")
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        found = len(schedule.split())
        yield invalid("spec.schedule", schedule, f"expected exactly 5 fields, found {found}: {schedule.split()}")
    elif "TZ" in schedule and "TZ" not in str(section(old or {}, "spec").get("schedule") or ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, detail)
    yield from nonnegative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    yield from _time_zone(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy", "Allow")
    if policy not in ("Allow", "Forbid", "Replace"):
        yield not_supported("spec.concurrencyPolicy", policy, ["Allow", "Forbid", "Replace"])
    inner = section(section(spec, "jobTemplate"), "spec")
    yield from _job_spec(inner, "spec.jobTemplate.spec", minor)
    if inner.get("selector") is not None:
        yield invalid("spec.jobTemplate.spec.selector", inner["selector"], "`selector` will be auto-generated")
    if inner.get("manualSelector"):
        yield not_supported("spec.jobTemplate.spec.manualSelector", True, ["nil", "false"])
    for limit in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from nonnegative(spec.get(limit), f"spec.{limit}")
    if old is None and len(name) > _LONGEST_CRON_JOB:
        yield invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB} characters")


def _time_zone(zone: object) -> Errors:
    field = "spec.timeZone"
    if zone is None:
        return
    text = str(zone)
    if not text:
        yield invalid(field, text, "timeZone must be nil or non-empty string")
        return
    for part in text.split("/"):
        if part in (".", "..") or part.startswith("-") or not re.fullmatch(r"[A-Za-z.\-_0-9+]{1,14}", part):
            yield invalid(field, text, f"unknown time zone {text}")
            return
    if text.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(field, text, detail)
