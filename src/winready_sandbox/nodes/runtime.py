"""Pod sandboxes and containers as the runtime makes them from a pod's specification."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from winready_sandbox.apiclient import ApiFailure, ApiUnreachable
from winready_sandbox.machine import images, users
from winready_sandbox.machine.builds import HOST_PROCESS_SINCE
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.images import Image
from winready_sandbox.machine.machine import HYPER_V_ISOLATION
from winready_sandbox.machine.tree import File
from winready_sandbox.machine.users import UnknownUser
from winready_sandbox.network.addresses import NoAddressLeft
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.network.resolver import DnsConfig
from winready_sandbox.nodes import environment, latency, resources
from winready_sandbox.nodes.environment import ConfigError
from winready_sandbox.nodes.identity import credentials, is_first, named_user, windows_options
from winready_sandbox.streams import Connection

if TYPE_CHECKING:
    from winready_sandbox.network.pod_endpoint import NetworkEndpoint
    from winready_sandbox.nodes.kubelet import Kubelet
    from winready_sandbox.nodes.volumes import PodVolumes

Object = dict[str, Any]
WINDOWS_HOSTS = "C:\\Windows\\System32\\drivers\\etc\\hosts"
_WINDOWS_ROOT = "containeradministrator"
_HOSTS_HEAD = """# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
_HOST_NETWORK_HEAD = "# Kubernetes-managed hosts file (host network).\n"


class PodSandboxError(Exception):
    """The pod sandbox could not be made (``FailedCreatePodSandBox``)."""


class LogonError(Exception):
    """The container's user cannot log on: the runtime makes the container and fails to start it."""


@dataclass(frozen=True)
class Prepared:
    """A container that only needs to be started."""

    image: Image
    container: Container
    argv: list[str]
    message: File
    """Where it can leave a last word."""


def is_host_process(pod: Object) -> bool:
    """Does this pod run on the host itself?"""
    return any(windows_options(pod, container).get("hostProcess") for container in pod["spec"]["containers"])


class PodSandbox:
    """The network and the names of one pod on one node."""

    def __init__(self, node: Kubelet, pod: Object) -> None:
        self._node = node
        self._pod = pod
        self.host_process = node.machine.os == "windows" and is_host_process(pod)
        self.endpoint: NetworkEndpoint | None = None
        self._virtual_machine = ""

    @property
    def on_host(self) -> bool:
        """Does the pod use the node's own network?"""
        if self.host_process:
            return not self._node.defects.runtime.host_process_own_address
        given = self._node.machine.os == "linux" or self._node.defects.runtime.host_network_for_all
        return bool(self._pod["spec"].get("hostNetwork")) and given

    @property
    def hostname(self) -> str:
        """What the pod's containers are called."""
        spec, metadata = self._pod["spec"], self._pod["metadata"]
        if self.on_host or self.host_process:
            return self._node.machine.name
        name = str(spec.get("hostname") or metadata["name"])[:63].rstrip("-.")
        if spec.get("setHostnameAsFQDN") and spec.get("subdomain"):
            return self._full_name(name)
        return name

    def _full_name(self, name: str) -> str:
        spec, metadata = self._pod["spec"], self._pod["metadata"]
        return f"{name}.{spec['subdomain']}.{metadata['namespace']}.svc.{self._node.fabric.domain}"

    async def create(self) -> list[str]:
        """Make it and return its addresses; raises `PodSandboxError`."""
        node, metadata = self._node, self._pod["metadata"]
        figures = latency.of(node.machine.os)
        async with node.start_slots:
            span = figures.host_process if self.host_process else figures.sandbox
            await node.clock.sleep(latency.draw(node.rng, span) * node.defects.kubelet.slow_start_factor)
        handler = await self._handler()
        self._check_host_process()
        self._check_user()
        self._check_network()
        if handler == HYPER_V_ISOLATION:
            self._virtual_machine = f"{metadata['uid']}@vm"
            node.machine.virtual_machines.add(self._virtual_machine)
        try:
            self.endpoint = node.fabric.attach(
                node.machine.name,
                namespace=metadata["namespace"],
                name=metadata["name"],
                uid=metadata["uid"],
                labels=metadata.get("labels") or {},
                host_network=self.on_host,
                dns=self._dns(),
            )
        except NoAddressLeft as error:
            raise PodSandboxError(
                "rpc error: code = Unknown desc = failed to setup network for sandbox: plugin failed (add): "
                f"failed to allocate address: {error}"
            ) from None
        if not self.on_host and node.machine.os == "linux":
            self._map_ports(self.endpoint)
        if self.host_process and node.defects.kubelet.host_pods_misreported:
            ranges = [ipaddress.ip_network(each) for each in node.object["spec"].get("podCIDRs") or []]
            return [str(each[1]) for each in ranges]
        return list(self.endpoint.addresses)

    def _map_ports(self, endpoint: NetworkEndpoint) -> None:
        """Let ports of the node lead to the pod where its containers ask for them."""
        network = self._node.fabric.nodes[self._node.machine.name]
        for container in self._pod["spec"]["containers"]:
            for port in container.get("ports") or []:
                if number := port.get("hostPort"):
                    address = port.get("hostIP") or ""
                    any_address = address in ("", "0.0.0.0", "::")
                    key = (port.get("protocol") or "TCP", "" if any_address else address, int(number))
                    network.host_ports[key] = (endpoint.stack, int(port["containerPort"]))

    async def _handler(self) -> str:
        """How the pod's RuntimeClass wants it to be run; empty for the usual way."""
        name = self._pod["spec"].get("runtimeClassName")
        if not name:
            return ""
        try:
            handler = str((await self._node.client.get("runtimeclasses", name)).get("handler") or "")
        except (ApiFailure, ApiUnreachable) as error:
            raise PodSandboxError(f'failed to get runtime handler for RuntimeClass "{name}": {error}') from None
        if handler and handler not in self._node.machine.runtime_handlers:
            raise PodSandboxError(
                "rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "
                f'"{handler}" is configured'
            )
        return handler

    def _check_host_process(self) -> None:
        """Older runtimes know nothing of them, and creating their containers fails (KEP-1981, known failure modes)."""
        if self.host_process and self._node.machine.containerd_release < HOST_PROCESS_SINCE:
            raise PodSandboxError(
                "rpc error: code = Unknown desc = failed to create containerd task: failed to create shim task: "
                "HostProcess containers are not supported by this runtime: unknown"
            )

    def _check_user(self) -> None:
        user = windows_options(self._pod).get("runAsUserName") or ""
        if not self.host_process:
            user = named_user(self._pod, None, self._node.defects.runtime)
        if self._node.machine.os != "windows" or not user:
            return
        if self.host_process and self._node.machine.windows_host.group(user):
            return
        try:
            users.windows_identity(user, host=self.host_process)
        except UnknownUser:
            identifier = self._pod["metadata"]["uid"].replace("-", "")
            raise PodSandboxError(
                f'rpc error: code = Unknown desc = failed to start sandbox "{identifier}": failed to create containerd '
                f"task: failed to create shim task: hcs::System::CreateProcess {identifier}: "
                f"{self._node.machine.logon_failure}: unknown"
            ) from None

    def _check_network(self) -> None:
        failing = self._node.defects.runtime.sandboxes_fail
        known = bool((self._pod.get("status") or {}).get("startTime"))
        if self.on_host or not failing or (failing == "new" and known):
            return
        identifier = self._pod["metadata"]["uid"].replace("-", "")
        raise PodSandboxError(
            f'rpc error: code = Unknown desc = failed to setup network for sandbox "{identifier}": plugin '
            'type="calico" failed (add): hnsCall failed in Win32: Element not found. (0x490)'
        )

    def _dns(self) -> DnsConfig:
        spec, fabric = self._pod["spec"], self._node.fabric
        policy = spec.get("dnsPolicy") or "ClusterFirst"
        cluster = fabric.cluster_dns_for(self._pod["metadata"]["namespace"], self._node.machine.os)
        if policy == "None":
            base = DnsConfig()
        elif policy == "Default" or self.host_process or (policy == "ClusterFirst" and self.on_host):
            base = fabric.node_dns
        else:
            base = cluster
        extra = spec.get("dnsConfig") or {}
        options = dict(base.options) | {item["name"]: item.get("value", "") for item in extra.get("options") or []}
        return DnsConfig(
            tuple(dict.fromkeys([*base.nameservers, *(extra.get("nameservers") or [])])),
            tuple(dict.fromkeys([*base.searches, *(extra.get("searches") or [])])),
            tuple(options.items()),
        )

    def hosts(self) -> str:
        """The text of the hosts file that the kubelet manages; in the node's own network it begins with the node's."""
        text = _HOSTS_HEAD
        spec = self._pod["spec"]
        if spec.get("hostNetwork"):
            # A kubelet goes by the specification, also on Windows, where such a pod has a network of its own.
            own, path = self._node.machine.files, WINDOWS_HOSTS if self._node.machine.os == "windows" else "/etc/hosts"
            text = _HOST_NETWORK_HEAD + (own.read(path).decode() if own.exists(path) else "")
        for address in self.endpoint.addresses if self.endpoint and not spec.get("hostNetwork") else []:
            full = f"{self._full_name(self.hostname)}\t" if spec.get("subdomain") and spec.get("hostname") else ""
            text += f"{address}\t{full}{self.hostname}\n"
        defects = self._node.fabric.nodes[self._node.machine.name].defects.dns
        if aliases := spec.get("hostAliases"):
            text += "\n# Entries added by HostAliases.\n"
            most = 1 if defects.first_alias_only else None
            names = [(alias["ip"], (alias.get("hostnames") or [])[:most]) for alias in aliases]
            text += "".join(f"{address}\t" + "\t".join(known) + "\n" for address, known in names)
        return text

    def _hosts_in_use(self) -> str:
        network = self._node.fabric.nodes[self._node.machine.name]
        own = self.hosts()
        network.first_hosts_file = network.first_hosts_file or own
        return network.first_hosts_file if network.defects.dns.hosts_of_first_pod else own

    def remove(self) -> None:
        """Take the pod off the network, and its virtual machine down."""
        self._node.machine.virtual_machines.discard(self._virtual_machine)
        if self.endpoint is not None:
            self._node.fabric.detach(self.endpoint)
            self.endpoint = None

    async def prepare(
        self, spec: Object, image: Image, volumes: PodVolumes, base: dict[str, str], *, again: bool = False
    ) -> Prepared:
        """Everything up to the start of a container, for the first time or ``again``; raises `ConfigError`."""
        node, pod = self._node, self._pod
        image = self._image_in_use(image, spec)
        variables = self._variables(spec, base)
        volumes.check(spec, variables)
        windows = image.os == "windows"
        user = self._user(spec, image)
        options = windows_options(pod, spec)
        limits = resources.limits(spec)
        account = credentials(pod, spec, node.machine.domain, node.defects.runtime) if windows else None
        unasked = not options.get("gmsaCredentialSpec")
        try:
            container = Container(
                node.machine,
                image,
                name=spec["name"],
                pod=f"{pod['metadata']['namespace']}/{pod['metadata']['name']}",
                hostname=self.hostname if account is None or self.host_process or unasked else account.account,
                user=user,
                cwd=environment.expand(spec.get("workingDir") or "", variables),
                env=variables,
                endpoint=self.endpoint,
                cpu_limit=float(limits["cpu"]) if "cpu" in limits else None,
                memory_limit=int(limits["memory"]) if "memory" in limits else None,
                first=is_first(pod, spec),
                again=again,
                host_process=self.host_process,
                credential_spec=account,
            )
        except UnknownUser:
            raise LogonError(
                "failed to create containerd task: failed to create shim task: hcs::System::CreateProcess "
                f"{spec['name']}: {node.machine.logon_failure}: unknown"
                if windows
                else f"failed to create containerd container: mount callback failed: unable to find user {user}: "
                "no matching entries in passwd file"
            ) from None
        container.cpu_request = float(resources.requests(spec).get("cpu", 0))
        message = File(b"", 0o666)
        container.mount_volume(spec.get("terminationMessagePath") or "/dev/termination-log", message)
        self._mount_kubelet_files(container, first=is_first(pod, spec))
        if not (self.host_process and node.defects.runtime.host_process_no_volumes):
            volumes.mount(container, spec, variables)
        if not windows:
            self._confine(container, spec.get("securityContext") or {})
        argv = environment.command_line(spec, list(image.entrypoint), list(image.cmd), variables)
        return Prepared(image, container, argv, message)

    def _confine(self, container: Container, context: Object) -> None:
        container.files.read_only_root = bool(context.get("readOnlyRootFilesystem"))
        container.privileged = bool(context.get("privileged"))
        container.no_new_privileges = context.get("allowPrivilegeEscalation") is False
        for each in (self._pod["spec"].get("securityContext") or {}).get("sysctls") or []:
            path = "/proc/sys/" + each["name"].replace("/", ".").replace(".", "/")
            container.files.mount(path, File(f"{each['value']}\n".encode(), 0o644), read_only=True)

    def _image_in_use(self, image: Image, spec: Object) -> Image:
        machine, defects = self._node.machine, self._node.defects.runtime
        build = machine.build.number if machine.build else ""
        first = is_first(self._pod, spec)
        stale = defects.stale_tag or ("" if first else defects.stale_tag_later)
        if stale and image.family == "agnhost":
            image = images.resolve(f"{image.repository}:{stale}", machine.os, build)
        if self._node.images.use(image) and defects.tag_moved:
            image = image.moved()
        if defects.linux_for_windows and machine.os == "windows" and not self.host_process:
            family = images.FAMILIES[image.family]
            if family.linux is not None:
                image = images.resolve(image.name, "linux")
        return image

    def _mount_kubelet_files(self, container: Container, *, first: bool) -> None:
        if self.host_process:
            return
        hosts = File(self._hosts_in_use().encode(), 0o644)
        if container.os == "windows":
            defects = self._node.fabric.nodes[self._node.machine.name].defects.dns
            if first or not defects.hosts_in_first_container:
                container.files.mount(WINDOWS_HOSTS, hosts)
            return
        container.files.mount("/etc/hosts", hosts)
        container.files.mount("/etc/hostname", File(f"{self.hostname}\n".encode()))
        if self.endpoint is not None:
            container.files.mount("/etc/resolv.conf", File(self.endpoint.dns.resolv_conf().encode()))

    def _variables(self, spec: Object, base: dict[str, str]) -> dict[str, str]:
        namespace = self._pod["metadata"]["namespace"]
        return environment.container_variables(
            spec,
            base,
            lambda resource, name: self._node.references.find(resource, name, namespace),
            self.field,
            lambda reference: self.resource(spec["name"], reference),
        )

    @property
    def addresses(self) -> list[str]:
        """Of the pod, as far as it has a network."""
        return list(self.endpoint.addresses) if self.endpoint else []

    async def connect(self, port: int) -> Connection:
        """A connection to a port of the pod, from inside; raises `NetworkError`."""
        if self.endpoint is None:
            raise NetworkError("failed to find sandbox in store: not found")
        return await self.endpoint.connect("127.0.0.1", port, timeout=10)

    def relabel(self, metadata: Object) -> None:
        """The pod has other labels or annotations from now on."""
        self._pod = {**self._pod, "metadata": metadata}

    def field(self, path: str) -> str:
        """The value of a fieldRef."""
        return environment.field_value(
            self._pod,
            path,
            addresses=self.addresses,
            host_addresses=self._node.addresses,
            node=self._node.machine.name,
        )

    def resource(self, container: str, reference: Object) -> str:
        """The value of a resourceFieldRef of a container."""
        everyone = (self._pod["spec"].get("initContainers") or []) + self._pod["spec"]["containers"]
        spec = next((item for item in everyone if item["name"] == container), everyone[0])
        allocatable = self._node.object["status"]["allocatable"]
        return environment.resource_value(self._pod, spec, reference, allocatable)

    def _user(self, spec: Object, image: Image) -> str:
        pod_context = self._pod["spec"].get("securityContext") or {}
        context = pod_context | (spec.get("securityContext") or {})
        who = f'(pod: "{self._pod["metadata"]["name"]}_{self._pod["metadata"]["namespace"]}'
        who += f'({self._pod["metadata"]["uid"]})", container: {spec["name"]})'
        if image.os == "windows":
            defects = self._node.defects.runtime
            named = str(windows_options(self._pod, spec).get("runAsUserName") or "")
            if defects.host_process_unprivileged and self.host_process:
                return "NT AUTHORITY\\Local service"
            if defects.host_process_as_system and self.host_process:
                return "NT AUTHORITY\\SYSTEM"
            if not self.host_process:
                named = named_user(self._pod, spec, defects)
            # User names on Windows are not case sensitive.
            root = (named or image.user).lower() == _WINDOWS_ROOT and not defects.root_let_in
            if context.get("runAsNonRoot") and root:
                field = "runAsUserName" if named else "runAsUser"
                raise ConfigError(
                    f"container's {field} ({named or image.user}) which will be regarded as root identity "
                    f"and will break non-root policy {who}"
                )
            return named
        user = "" if context.get("runAsUser") is None else str(context["runAsUser"])
        if context.get("runAsNonRoot"):
            effective = user or image.user.partition(":")[0]
            if user == "0":
                raise ConfigError(f"container's runAsUser breaks non-root policy {who}")
            if effective in ("", "0", "root"):
                raise ConfigError(f"container has runAsNonRoot and image will run as root {who}")
            if not effective.isdigit():
                raise ConfigError(
                    f"container has runAsNonRoot and image has non-numeric user ({effective}), cannot verify user is "
                    f"non-root {who}"
                )
        if context.get("runAsGroup") is not None:
            return f"{user or image.user.partition(':')[0] or '0'}:{context['runAsGroup']}"
        return user
