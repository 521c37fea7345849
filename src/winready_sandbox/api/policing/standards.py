"""The Pod Security Standards: which pods the levels baseline and restricted let in, by the version of the standard.

Every control says why it refuses and who is to blame, in the words of the real admission plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from winready_sandbox.api.objects import Object

LEVELS = ("privileged", "baseline", "restricted")
Violation = tuple[str, str]
"""A reason and its details."""
Control = Callable[[Object, Object], Violation | None]
"""Asked with the metadata and the spec of a pod."""

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD, _SECCOMP = "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/"
_CAPABILITIES = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS = frozenset(
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ]
)
_SYSCTLS_27 = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29 = _SYSCTLS_27 | frozenset(
    [
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ]
)
_SYSCTLS_32 = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)


@dataclass(frozen=True)
class _Versioned:
    """A control of a level: what it asks from which version on, and which controls of baseline it stands in for."""

    level: str
    name: str
    since: tuple[tuple[int, Control], ...]
    instead_of: str = ""

    def at(self, minor: int) -> Control | None:
        """The control as it is in a version, if it is there."""
        return next((control for first, control in reversed(self.since) if first <= minor), None)


def violations(level: str, minor: int, metadata: Object, spec: Object) -> list[Violation]:
    """What a pod asks for beyond a level, as the standard was in 1.``minor``."""
    return [found for control in _controls(level, minor) if (found := control(metadata, spec)) is not None]


def reasons(found: Iterable[Violation]) -> str:
    """Why a pod is refused, in short."""
    return ", ".join(reason for reason, _ in found)


def words(found: Iterable[Violation]) -> str:
    """Why a pod is refused, with all details."""
    return ", ".join(f"{reason} ({detail})" for reason, detail in found)


def _controls(level: str, minor: int) -> list[Control]:
    known = _BY_LEVEL_AND_VERSION.get((level, minor))
    if known is None:
        there = [(each, control) for each in _CONTROLS if (control := each.at(minor)) is not None]
        replaced = {each.instead_of for each, _ in there} if level == "restricted" else set()
        wanted = LEVELS[: LEVELS.index(level) + 1]
        known = [control for each, control in there if each.level in wanted and each.name not in replaced]
        _BY_LEVEL_AND_VERSION[level, minor] = known
    return known


_BY_LEVEL_AND_VERSION: dict[tuple[str, int], list[Control]] = {}


# Who says what


def _all(spec: Object) -> list[Object]:
    return [
        *(spec.get("initContainers") or ()),
        *(spec.get("containers") or ()),
        *(spec.get("ephemeralContainers") or ()),
    ]


def _context(holder: Object) -> Object:
    return holder.get("securityContext") or {}


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _named(what: str, names: list[str]) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {_quoted(names)}"


def _containers(names: list[str]) -> str:
    return _named("container", names)


def _setters(spec: Object, wrong: Callable[[Object], bool]) -> str:
    """The pod and the containers whose security context is wrong, in one phrase; empty if none is."""
    who = ["pod"] if wrong(_context(spec)) else []
    names = [each["name"] for each in _all(spec) if wrong(_context(each))]
    return " and ".join([*who, *([_containers(names)] if names else [])])


def _windows(spec: Object) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _unless_windows(control: Control) -> Control:
    """Fields of Linux are not asked of pods that declare Windows, which may not have them."""
    return lambda metadata, spec: None if _windows(spec) else control(metadata, spec)


def _unless_own_users(control: Control) -> Control:
    """Pods with users of their own may do as root what root of the host may not see."""
    return lambda metadata, spec: None if spec.get("hostUsers") is False else control(metadata, spec)


# Baseline


def _app_armor(metadata: Object, spec: Object) -> Violation | None:
    allowed = ("RuntimeDefault", "Localhost")

    def kind(context: Object) -> str | None:
        profile = context.get("appArmorProfile")
        return None if profile is None else str(profile.get("type", ""))

    def wrong(context: Object) -> bool:
        return kind(context) is not None and kind(context) not in allowed

    who = _setters(spec, wrong)
    values = sorted({str(kind(context)) for context in map(_context, (spec, *_all(spec))) if wrong(context)})
    noted = sorted(
        f'{key}="{value}"'
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(_APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if noted:
        who = " and ".join(filter(None, (who, "annotations" if len(noted) > 1 else "annotation")))
    values += noted
    if not who:
        return None
    some = "forbidden AppArmor profiles" if len(values) > 1 else "forbidden AppArmor profile"
    return some, f"{who} must not set AppArmor profile type to {_quoted(values)}"


def _added(container: Object, allowed: frozenset[str]) -> list[str]:
    capabilities = _context(container).get("capabilities") or {}
    return [each for each in capabilities.get("add") or () if each not in allowed]


def _capabilities(metadata: Object, spec: Object) -> Violation | None:
    names = [each["name"] for each in _all(spec) if _added(each, _CAPABILITIES)]
    if not names:
        return None
    return "non-default capabilities", _must_not_add(spec, names, _CAPABILITIES)


def _must_not_add(spec: Object, names: list[str], allowed: frozenset[str]) -> str:
    added = sorted({one for each in _all(spec) for one in _added(each, allowed)})
    return f"{_containers(names)} must not include {_quoted(added)} in securityContext.capabilities.add"


def _host_namespaces(metadata: Object, spec: Object) -> Violation | None:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return ("host namespaces", ", ".join(shared)) if shared else None


def _host_paths(metadata: Object, spec: Object) -> Violation | None:
    names = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return ("hostPath volumes", _named("volume", names)) if names else None


def _host_ports(metadata: Object, spec: Object) -> Violation | None:
    used = {
        each["name"]: [str(port["hostPort"]) for port in each.get("ports") or () if port.get("hostPort")]
        for each in _all(spec)
    }
    names = [name for name, ports in used.items() if ports]
    if not names:
        return None
    numbers = sorted({port for ports in used.values() for port in ports})
    verb, some = "use" if len(names) > 1 else "uses", "hostPorts" if len(numbers) > 1 else "hostPort"
    return "hostPort", f"{_containers(names)} {verb} {some} {', '.join(numbers)}"


def _hosts_of_handlers(metadata: Object, spec: Object) -> Violation | None:
    hosts: dict[str, set[str]] = {}
    for each in _all(spec):
        hooks = each.get("lifecycle") or {}
        handlers = [each.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [hooks.get("postStart"), hooks.get("preStop")]
        for handler in filter(None, handlers):
            for way in ("httpGet", "tcpSocket"):
                if host := (handler.get(way) or {}).get("host"):
                    hosts.setdefault(each["name"], set()).add(host)
    if not hosts:
        return None
    called = sorted({host for some in hosts.values() for host in some})
    verb, some = "use" if len(hosts) > 1 else "uses", "hosts" if len(called) > 1 else "host"
    reason = "probe or lifecycle host"
    return reason, f"{_containers(sorted(hosts))} {verb} probe or lifecycle {some} {_quoted(called)}"


def _privileged(metadata: Object, spec: Object) -> Violation | None:
    names = [each["name"] for each in _all(spec) if _context(each).get("privileged")]
    return ("privileged", f"{_containers(names)} must not set securityContext.privileged=true") if names else None


def _proc_mount(metadata: Object, spec: Object) -> Violation | None:
    found = {each["name"]: _context(each).get("procMount") for each in _all(spec)}
    wrong = {name: str(value) for name, value in found.items() if value not in (None, "Default")}
    if not wrong:
        return None
    values = _quoted(sorted(set(wrong.values())))
    return "procMount", f"{_containers(list(wrong))} must not set securityContext.procMount to {values}"


def _selinux(allowed: frozenset[str]) -> Control:
    def wrong(context: Object) -> bool:
        options = context.get("seLinuxOptions") or {}
        return options.get("type", "") not in allowed or bool(options.get("user") or options.get("role"))

    def control(metadata: Object, spec: Object) -> Violation | None:
        who = _setters(spec, wrong)
        if not who:
            return None
        options = [_context(each).get("seLinuxOptions") or {} for each in (spec, *_all(spec))]
        types = sorted({str(each.get("type", "")) for each in options} - allowed)
        what = [_named("type", types)] if types else []
        what += [f"{name} may not be set" for name in ("user", "role") if any(each.get(name) for each in options)]
        return "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(what)}"

    return control


def _seccomp_kind(context: Object) -> str | None:
    profile = context.get("seccompProfile")
    return None if profile is None else str(profile.get("type", ""))


def _unconfined(context: Object) -> bool:
    return _seccomp_kind(context) not in (None, "Localhost", "RuntimeDefault")


def _seccomp_annotations(metadata: Object, spec: Object) -> Violation | None:
    keys = (_SECCOMP_POD, *(f"{_SECCOMP}{each['name']}" for each in _all(spec)))
    given = metadata.get("annotations") or {}
    allowed = ("runtime/default", "docker/default")
    wrong = sorted(
        {
            f'{key}="{given[key]}"'
            for key in keys
            if key in given and given[key] not in allowed and not given[key].startswith("localhost/")
        }
    )
    some = "annotations" if len(wrong) > 1 else "annotation"
    return ("seccompProfile", f"forbidden {some} {', '.join(wrong)}") if wrong else None


def _seccomp(metadata: Object, spec: Object) -> Violation | None:
    who = _setters(spec, _unconfined)
    if not who:
        return None
    values = {str(_seccomp_kind(context)) for context in map(_context, (spec, *_all(spec))) if _unconfined(context)}
    return "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {_quoted(sorted(values))}"


def _sysctls(allowed: frozenset[str]) -> Control:
    def control(metadata: Object, spec: Object) -> Violation | None:
        names = [each.get("name", "") for each in _context(spec).get("sysctls") or ()]
        wrong = [name for name in names if name not in allowed]
        return ("forbidden sysctls", ", ".join(wrong)) if wrong else None

    return control


def _host_process(metadata: Object, spec: Object) -> Violation | None:
    who = _setters(spec, lambda context: bool((context.get("windowsOptions") or {}).get("hostProcess")))
    return ("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None


# Restricted


def _escalation(metadata: Object, spec: Object) -> Violation | None:
    names = [each["name"] for each in _all(spec) if _context(each).get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    detail = f"{_containers(names)} must set securityContext.allowPrivilegeEscalation=false"
    return "allowPrivilegeEscalation != false", detail


def _few_capabilities(metadata: Object, spec: Object) -> Violation | None:
    allowed = frozenset({"NET_BIND_SERVICE"})
    kept = [
        each["name"]
        for each in _all(spec)
        if "ALL" not in ((_context(each).get("capabilities") or {}).get("drop") or ())
    ]
    adding = [each["name"] for each in _all(spec) if _added(each, allowed)]
    details = [f'{_containers(kept)} must set securityContext.capabilities.drop=["ALL"]'] if kept else []
    details += [_must_not_add(spec, adding, allowed)] if adding else []
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def _few_volumes(metadata: Object, spec: Object) -> Violation | None:
    kinds = {
        str(volume["name"]): {key for key, value in volume.items() if key != "name" and value is not None}
        for volume in spec.get("volumes") or ()
    }
    wrong = {name: next(iter(kind), "unknown") for name, kind in kinds.items() if not kind & _VOLUMES}
    if not wrong:
        return None
    verb, listed = "use" if len(wrong) > 1 else "uses", sorted(set(wrong.values()))
    some = "types" if len(listed) > 1 else "type"
    detail = f"{_named('volume', list(wrong))} {verb} restricted volume {some} {_quoted(listed)}"
    return "restricted volume types", detail


def _implied(spec: Object, field: str, satisfied: bool) -> list[str]:
    """Containers for which neither they nor their pod say what is asked."""
    return [] if satisfied else [each["name"] for each in _all(spec) if _context(each).get(field) is None]


def _non_root(metadata: Object, spec: Object) -> Violation | None:
    reason = "runAsNonRoot != true"
    who = _setters(spec, lambda context: context.get("runAsNonRoot") is False)
    if who:
        return reason, f"{who} must not set securityContext.runAsNonRoot=false"
    names = _implied(spec, "runAsNonRoot", _context(spec).get("runAsNonRoot") is True)
    return (reason, f"pod or {_containers(names)} must set securityContext.runAsNonRoot=true") if names else None


def _no_root(metadata: Object, spec: Object) -> Violation | None:
    who = _setters(spec, lambda context: context.get("runAsUser") == 0)
    return ("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def _confined(metadata: Object, spec: Object) -> Violation | None:
    if (found := _seccomp(metadata, spec)) is not None:
        return found
    names = _implied(spec, "seccompProfile", _seccomp_kind(_context(spec)) is not None)
    detail = f"pod or {_containers(names)} must set securityContext.seccompProfile.type to"
    return ("seccompProfile", f'{detail} "RuntimeDefault" or "Localhost"') if names else None


_CONTROLS = (
    _Versioned("baseline", "appArmorProfile", ((0, _app_armor),)),
    _Versioned("baseline", "capabilities_baseline", ((0, _capabilities),)),
    _Versioned("baseline", "hostNamespaces", ((0, _host_namespaces),)),
    _Versioned("baseline", "hostPathVolumes", ((0, _host_paths),)),
    _Versioned("baseline", "hostPorts", ((0, _host_ports),)),
    _Versioned("baseline", "hostProbesAndHostLifecycle", ((34, _hosts_of_handlers),)),
    _Versioned("baseline", "privileged", ((0, _privileged),)),
    _Versioned("baseline", "procMount", ((0, _proc_mount), (35, _unless_own_users(_proc_mount)))),
    _Versioned(
        "baseline", "seLinuxOptions", ((0, _selinux(_SELINUX)), (31, _selinux(_SELINUX | {"container_engine_t"})))
    ),
    _Versioned("baseline", "seccompProfile_baseline", ((0, _seccomp_annotations), (19, _seccomp))),
    _Versioned(
        "baseline",
        "sysctls",
        (
            (0, _sysctls(_SYSCTLS)),
            (27, _sysctls(_SYSCTLS_27)),
            (29, _sysctls(_SYSCTLS_29)),
            (32, _sysctls(_SYSCTLS_32)),
        ),
    ),
    _Versioned("baseline", "windowsHostProcess", ((0, _host_process),)),
    _Versioned("restricted", "allowPrivilegeEscalation", ((8, _escalation), (25, _unless_windows(_escalation)))),
    _Versioned(
        "restricted",
        "capabilities_restricted",
        ((22, _few_capabilities), (25, _unless_windows(_few_capabilities))),
        "capabilities_baseline",
    ),
    _Versioned("restricted", "procMount_restricted", ((35, _proc_mount),), "procMount"),
    _Versioned("restricted", "restrictedVolumes", ((0, _few_volumes),), "hostPathVolumes"),
    _Versioned("restricted", "runAsNonRoot", ((0, _non_root), (35, _unless_own_users(_non_root)))),
    _Versioned("restricted", "runAsUser", ((23, _no_root), (35, _unless_own_users(_no_root)))),
    _Versioned(
        "restricted",
        "seccompProfile_restricted",
        ((19, _confined), (25, _unless_windows(_confined))),
        "seccompProfile_baseline",
    ),
)
"""In the order in which they are told."""
