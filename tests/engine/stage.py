"""Where runs are tried: a healthy sandbox and whoever verifies it, on one event loop whose time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from winready.checks.context import Context
from winready.checks.registry import Check, CheckFunction
from winready.cluster.cleanup import clean_up
from winready.cluster.client import Client
from winready.cluster.directory import ActiveDirectory
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import NAMESPACES, PODS
from winready.cluster.settings import RUN_LABEL, Settings
from winready.cluster.timing import TABLE, Timing
from winready.engine import events
from winready.engine.features import Wanted
from winready.engine.options import Options
from winready.engine.outcomes import FeatureResult, RequirementResult
from winready.engine.run import Run
from winready.engine.selection import Selection
from winready.engine.verdict import Verdict
from winready.report.folders import new_run_id
from winready.report.following import Handler, follow
from winready.report.record import Record, from_events
from winready.spec.loader import load_standard
from winready.spec.model import Specification
from winready_sandbox.api.identity import ADMIN
from winready_sandbox.api.trouble import ApiDefects
from winready_sandbox.up import Sandbox
from winready_sandbox.wire import WireConnector

T = TypeVar("T")
Told = TypeVar("Told", bound=events.AnyEvent)
Hook = Callable[[events.AnyEvent, Run], object]
STANDARD = load_standard()
BY_ADDRESS = "core.network.windows-to-linux-pod-ip"
BY_SERVICE = "core.network.windows-to-linux-service-ip"


class Listener:
    """A handler that keeps what it hears and in which order it was called; ``trouble`` may raise at an event."""

    def __init__(
        self, name: str = "a listener", trouble: Callable[[int, events.AnyEvent], object] | None = None
    ) -> None:
        self.name = name
        self.told: list[events.AnyEvent] = []
        self.calls: list[str] = []
        self._trouble = trouble

    def start(self) -> None:
        self.calls.append("start")

    def handle(self, event: events.AnyEvent) -> None:
        if self._trouble is not None:
            self._trouble(len(self.told), event)
        self.told.append(event)

    def close(self) -> None:
        self.calls.append("close")


@dataclass
class Played:
    """A run that has ended, and the cluster after it."""

    run_id: str
    told: list[events.AnyEvent]
    troubles: dict[str, str]
    left: list[str]
    """Namespaces with the label of a run, and pods in them."""
    record: Record = field(init=False)

    def __post_init__(self) -> None:
        self.record = from_events(self.told)

    def every(self, kind: type[Told]) -> list[Told]:
        """The events of a kind."""
        return [event for event in self.told if isinstance(event, kind)]

    def only(self, kind: type[Told]) -> Told:
        """The one event of a kind."""
        (event,) = self.every(kind)
        return event

    @property
    def verdict(self) -> Verdict:
        """What the run came to, its last word."""
        last = self.told[-1]
        assert isinstance(last, events.RunFinished)
        return last.verdict

    @property
    def features(self) -> dict[str, FeatureResult]:
        """What became of each feature; none has two outcomes."""
        found = [event.result for event in self.every(events.FeatureFinished)]
        assert len({result.id for result in found}) == len(found)
        return {result.id: result for result in found}

    @property
    def results(self) -> dict[str, RequirementResult]:
        """What became of each requirement; none has two outcomes."""
        found = [event.result for event in self.every(events.RequirementFinished)]
        assert len({result.id for result in found}) == len(found)
        return {result.id: result for result in found}


class Stage:
    """The cluster, and ways to verify it."""

    def __init__(self, runner: asyncio.Runner, sandbox: Sandbox) -> None:
        self._runner = runner
        self.sandbox = sandbox

    @property
    def api(self) -> ApiDefects:
        """What is wrong with the API server, for everybody but the sandbox itself."""
        return self.sandbox.embedded.trouble.defects

    def run(self, story: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Let something happen to the cluster itself."""
        return self._runner.run(story())

    def do(self, story: Callable[[Client], Awaitable[T]]) -> T:
        """Let a story happen, with a client of the cluster."""

        async def tell() -> T:
            async with self._client() as client:
                return await story(client)

        return self._runner.run(tell())

    def play(
        self,
        *requirements: str,
        journal: Handler | None = None,
        others: Sequence[Handler] = (),
        on: Hook | None = None,
        specification: Specification = STANDARD,
        run_id: str = "",
        poll: float = TABLE.poll,
        directory: ActiveDirectory | None = None,
        features: Sequence[Wanted] = (),
        **options: Any,
    ) -> Played:
        """Follow a run to its end; ``on`` hears every event and can do something about it."""
        timing = Timing(table=replace(TABLE, poll=poll))
        settings = Settings(run_id=run_id or new_run_id(), timing=timing, active_directory=directory)
        selection = Selection(requirements=list(requirements), features=[each.id for each in features])
        options |= {"features": tuple(features)}
        listener = Listener("the stage")

        async def story(client: Client) -> Played:
            run = Run(client, specification, Options(settings=settings, selection=selection, **options))
            hooks = [Listener("the hook", lambda _, event: on(event, run))] if on else []
            troubles = await follow(run, journal or Listener("the journal"), [*others, listener, *hooks])
            return Played(settings.run_id, listener.told, troubles, [])

        played = self.do(story)
        self.api.errors = self.api.resets = 0.0
        played.left = self.left()
        return played

    def left(self) -> list[str]:
        """What runs have left on the cluster."""
        return self.do(left)

    def tidy(self) -> None:
        """Remove what a test made a run leave behind."""
        assert self.do(lambda client: clean_up(client, run_id=None, patience=300.0, pause=1.0)) == []

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        plane = self.sandbox.embedded
        target = Target(plane.url, token=plane.token(ADMIN))
        async with Client.connect(target, WireConnector(plane.inside)) as client:
            yield client


async def left(client: Client) -> list[str]:
    """Namespaces of runs, and the pods in them."""
    found = []
    for namespace in await client.list(NAMESPACES, labels=RUN_LABEL):
        name = namespace["metadata"]["name"]
        found.append(name)
        found += [f"{name}/{pod['metadata']['name']}" for pod in await client.list(PODS, name)]
    return found


def a_check(requirement: str, run: CheckFunction, **given: Any) -> Check:
    """A check that tests put in the place of a real one."""
    plain = {"expected_s": 1.0, "expected_s_per_node": 0.0, "windows_pods": 0, "windows_pods_per_node": 0}
    return Check(requirement, run, frozenset(given.pop("fixtures", ())), **{**plain, **given})


def raises(error: BaseException) -> CheckFunction:
    """A check that ends this way."""

    async def run(ctx: Context) -> None:
        raise error

    return run
