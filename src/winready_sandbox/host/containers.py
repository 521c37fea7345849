"""Containers of the host node: confined processes, in the life that every kubelet gives its containers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winready_sandbox.host import images
from winready_sandbox.host.confinement import SEARCH_PATH, Confinement, Mount
from winready_sandbox.host.ground import Ground, Running, bubblewrap, held
from winready_sandbox.host.images import HostImage
from winready_sandbox.host.processes import HostProcess
from winready_sandbox.host.users import account
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.machine.images import PullError
from winready_sandbox.nodes.containers import ContainerRun, Instance
from winready_sandbox.nodes.environment import ConfigError, command_line, expand, service_variables
from winready_sandbox.nodes.logs import ContainerLog, LogPipe
from winready_sandbox.nodes.status import ContainerState
from winready_sandbox.nodes.times import stamp
from winready_sandbox.nodes.volumes.content import VolumeError
from winready_sandbox.streams import Pipe

if TYPE_CHECKING:
    from winready_sandbox.host.pods import HostPod

Object = dict[str, Any]
_RETRY = 10.0
_LONGEST_MESSAGE = 4096


class HostContainer:
    """One container."""

    oom_killed = False
    """Nobody limits memory here."""

    def __init__(self, ground: Ground, confinement: Confinement, network: str) -> None:
        """``network``: the pod whose network it is in; none is the node's own."""
        self.id = uuid.uuid4().hex * 2
        self._ground = ground
        self._confinement = confinement
        self._network = network
        self._first = 0
        """The process number of the container's own first process."""
        self.main: HostProcess | None = None

    def start(self, argv: list[str], stdin: Pipe | None, stdout: Pipe, stderr: Pipe, *, tty: bool) -> HostProcess:
        """Start the container's own process; raises `ExecError` when the image does not have it."""
        self._check(argv)

        async def launch(streams: tuple[int, int, int]) -> Running:
            return await self._confine(argv, streams, tty=tty)

        self.main = HostProcess(self._ground, launch, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty)
        if stdin is None:
            self.main.stdin.close()
        return self.main

    def _check(self, argv: Sequence[str]) -> None:
        if words := self._confinement.missing_program(list(argv)):
            raise ExecError("linux", words)

    async def _confine(self, argv: list[str], streams: tuple[int, int, int], *, tty: bool) -> Running:
        ground, account = self._ground, self._confinement.account
        arguments = self._confinement.arguments(ground.inside, every_user=ground.every_user)
        # Not on the command line, which everybody on the machine can read.
        given = held("arguments", "\0".join(arguments).encode("utf-8", "surrogateescape"))
        reading, writing = os.pipe()
        users = {"user": account.user, "group": account.group, "groups": list(account.groups)}
        try:
            running = await ground.start_process(
                [bubblewrap(), "--args", "3", "--info-fd", "4", "--", *argv],
                {},
                (*streams, given, writing),
                network=self._network,
                tty=tty,
                **(users if ground.every_user else {}),
            )
        finally:
            os.close(given)
            os.close(writing)
            self._first = await asyncio.to_thread(_first_process, reading)
        return running

    def spawn(self, argv: Sequence[str], *, stdin: Pipe | None = None, tty: bool = False) -> HostProcess:
        """Start one more process in it; raises `ExecError` when there is no such program."""
        self._check(argv)
        ground, confinement = self._ground, self._confinement
        users: Object = {"user": confinement.account.user, "group": confinement.account.group}
        if ground.every_user:
            users["groups"] = list(confinement.account.groups)
        confiner = os.path.realpath(bubblewrap())

        async def launch(streams: tuple[int, int, int]) -> Running:
            return await ground.start_process(
                argv,
                confinement.env,
                streams,
                inside=self._first,
                confiner=confiner,
                folder=confinement.folder or "/",
                tty=tty,
                **users,
            )

        process = HostProcess(ground, launch, stdin=stdin, tty=tty)
        if stdin is None:
            process.stdin.close()
        return process

    async def stop(self, grace: float) -> int:
        """Ask the first process to end; after the grace everything in the container is ended."""
        if self.main is None:
            return 0
        await self.main.started()
        if grace > 0 and self._first and self.main.running:
            await self._ground.signal(self._first, signal.SIGTERM)
            try:
                async with asyncio.timeout(grace):
                    return await self.main.wait()
            except TimeoutError:
                pass
        if self.main.running:
            await self._ground.signal(self._first, signal.SIGKILL) if self._first else await self.main.kill()
        return await self.main.wait()


def _first_process(reading: int) -> int:
    """What bubblewrap says of the process that it made; the other end may stay open for as long as that lives."""
    said = b""
    try:
        while b"}" not in said and (data := os.read(reading, 4096)):
            said += data
    finally:
        os.close(reading)
    return int(json.loads(said)["child-pid"]) if b"}" in said else 0


class LastWord:
    """The file that a container can leave a message in."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def data(self) -> bytes:
        """What is in it; whatever else the container made of that place is not read."""
        try:
            with open(os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                return file.read(_LONGEST_MESSAGE)
        except OSError:
            return b""


def _copy_anew(source: Path, target: Path) -> None:
    """A fresh copy, whatever an attempt before this one has left."""
    shutil.rmtree(target, ignore_errors=True)
    images.copy(source, target)


class HostRun(ContainerRun):
    """A container of a pod on the host node over all its restarts."""

    def __init__(self, worker: HostPod, state: ContainerState) -> None:
        super().__init__(worker, state)
        self._pod = worker

    async def _make(self) -> Instance | None:
        image = await self._pull(self._named)
        while True:
            try:
                return await self._start_from(image)
            except (ConfigError, VolumeError) as error:
                self._wait_state("CreateContainerConfigError", str(error))
                self.event("Failed", f"Error: {error}", warning=True)
                await self.worker.clock.sleep(_RETRY)

    async def _named(self, reference: str) -> HostImage:
        """The image of that name; nobody but the user brings images here."""
        store = self._pod.host.store
        image = store.get(images.tagged(reference))
        if image is None:
            there = ", ".join(sorted(store)) or "none"
            raise PullError(f"this node has only the images that it was started with ({there}); add --host-image")
        self.event("Pulled", f'Container image "{reference}" already present on machine')
        return image

    async def _start_from(self, image: HostImage) -> Instance | None:
        worker, spec = self._pod, self.spec
        folder = worker.folder / "containers" / f"{self.name}-{self.state.restarts}"
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        variables = await self._variables(image)
        who = account(worker.pod, spec, image.user, image.root)
        variables.setdefault("HOME", "/root" if who.user == 0 else "/")
        read_only = bool((spec.get("securityContext") or {}).get("readOnlyRootFilesystem"))
        root = image.root
        if not read_only:
            root = folder / "root"
            await asyncio.to_thread(_copy_anew, image.root, root)
        message = folder / "termination-log"
        message.touch()
        message.chmod(0o666)
        place = spec.get("terminationMessagePath") or "/dev/termination-log"
        mounts = [*worker.kept_files(), Mount(message, place), *worker.storage.mounts(spec, variables)]
        cwd = expand(spec.get("workingDir") or image.folder, variables)
        hostname = worker.sandbox.hostname
        confinement = Confinement(root, read_only, tuple(mounts), who, hostname, cwd, variables)
        if not read_only:
            await asyncio.to_thread(confinement.make_places)
        container = HostContainer(worker.host.ground, confinement, worker.network)
        self.state.image, self.state.image_id = image.name, image.id
        self.event("Created", "Container created")
        argv = command_line(spec, list(image.entrypoint), list(image.cmd), variables)
        return await self._run_in(container, argv, LastWord(message))

    async def _variables(self, image: HostImage) -> dict[str, str]:
        worker = self._pod
        services = await worker.node.references.services()
        links = worker.pod["spec"].get("enableServiceLinks", True) is not False
        base = {"PATH": SEARCH_PATH, "HOSTNAME": worker.sandbox.hostname, **image.env}
        base |= service_variables(services, worker.pod["metadata"]["namespace"], links=links)
        return worker.host_sandbox.variables(self.spec, base)

    async def _run_in(self, container: HostContainer, argv: list[str], message: LastWord) -> Instance | None:
        log, begun = ContainerLog(), stamp()
        stdout, stderr = LogPipe(log, "stdout"), LogPipe(log, "stderr")
        identifier = f"bubblewrap://{container.id}"
        self.state.container_id = identifier
        stdin, tty = Pipe() if self.spec.get("stdin") else None, bool(self.spec.get("tty"))
        try:
            process = container.start(argv, stdin, stdout, stdout if tty else stderr, tty=tty)
        except ExecError as error:
            self._start_error(error.on_start(container.id), begun, identifier)
            return None
        try:
            trouble = await process.started()
        except asyncio.CancelledError:
            await container.stop(0)
            raise
        if trouble:
            self._start_error(trouble, begun, identifier)
            return None
        self.previous_log, self.log = self.log, log
        now = self.worker.clock.now()
        return Instance(container, process, log, stdout, stderr, begun, now, identifier, message)
