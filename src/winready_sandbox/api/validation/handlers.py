"""Probes and hooks of containers."""

from __future__ import annotations

import re

from winready_sandbox.api.errors import forbidden_field, invalid, not_supported, required
from winready_sandbox.api.gates import on
from winready_sandbox.api.validation.formats import Errors, at, nonnegative, port, port_number
from winready_sandbox.api.validation.reading import Object, children, section

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_OF_PROBES, _OF_HOOKS = ("exec", "httpGet", "tcpSocket", "grpc"), ("exec", "httpGet", "tcpSocket", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for"
    " validation is '[-A-Za-z0-9]+')"
)


def hooks(container: Object, grace: object, here: str, minor: int) -> Errors:
    """What a container does when it starts and stops, and how it is watched."""
    for name in ("postStart", "preStop"):
        handler = section(container, "lifecycle").get(name)
        if isinstance(handler, dict):
            yield from _handler(handler, _OF_HOOKS, grace, f"{here}.lifecycle.{name}", minor)
    for name in PROBES:
        probe = container.get(name)
        if not isinstance(probe, dict):
            continue
        path = f"{here}.{name}"
        yield from _handler(probe, _OF_PROBES, grace, path, minor)
        for number in _NUMBERS:
            yield from nonnegative(probe.get(number), f"{path}.{number}")
        own = probe.get("terminationGracePeriodSeconds")
        if isinstance(own, int) and own <= 0:
            yield invalid(f"{path}.terminationGracePeriodSeconds", own, "must be greater than 0")
        if name == "readinessProbe":
            if own is not None:
                yield invalid(f"{path}.terminationGracePeriodSeconds", own, "must not be set for readinessProbes")
        elif probe.get("successThreshold", 1) != 1:
            yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(holder: Object, kinds: tuple[str, ...], grace: object, path: str, minor: int) -> Errors:
    given = [name for name in kinds if isinstance(holder.get(name), dict)]
    if not given:
        yield required(path, "must specify a handler type")
    for extra in given[1:]:
        yield forbidden_field(f"{path}.{extra}", "may not specify more than 1 handler type")
    for name in given[:1]:
        handler, here = holder[name], f"{path}.{name}"
        if name == "exec" and not handler.get("command"):
            yield required(f"{here}.command")
        elif name == "httpGet":
            yield from _http(handler, here)
        elif name == "tcpSocket":
            yield from port(handler.get("port"), f"{here}.port")
        elif name == "grpc":
            yield from at(f"{here}.port", handler.get("port") or 0, port_number(handler.get("port")))
        elif name == "sleep":
            yield from _sleep(handler.get("seconds", 0), grace, here, minor)


def _http(handler: Object, here: str) -> Errors:
    yield from port(handler.get("port"), f"{here}.port")
    if handler.get("scheme", "HTTP") not in ("HTTP", "HTTPS"):
        yield not_supported(f"{here}.scheme", handler.get("scheme"), ["HTTP", "HTTPS"])
    for header in children(handler, "httpHeaders"):
        if not _HEADER.fullmatch(str(header.get("name") or "")):
            yield invalid(f"{here}.httpHeaders", header.get("name") or "", _HEADER_TEXT)


def _sleep(seconds: object, grace: object, here: str, minor: int) -> Errors:
    if not isinstance(seconds, int) or not isinstance(grace, int):
        return
    zero = on("PodLifecycleSleepActionAllowZero", minor)
    if seconds > grace or seconds < 0 or (seconds == 0 and not zero):
        if zero:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        else:
            detail = (
                f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace})."
                " Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
            )
        yield invalid(here, seconds, detail)
