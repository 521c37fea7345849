"""A run from start to verdict. Read top to bottom, this is the story of a run; nothing in it prints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from winready import __version__
from winready.checks.fixtures import EXPECTED_SECONDS
from winready.checks.registry import Check, load_checks
from winready.checks.world import World
from winready.cluster.cleanup import clean_up
from winready.cluster.client import Client
from winready.cluster.errors import ClusterError, Unauthorized
from winready.cluster.inventory import Inventory, take_inventory
from winready.cluster.rights import missing_rights
from winready.cluster.secrets import without_secrets
from winready.cluster.settings import Settings
from winready.cluster.timing import now
from winready.engine import events
from winready.engine.judging import judge_requirement, unjudged
from winready.engine.outcomes import RequirementResult
from winready.engine.plan import DEFAULT_NODES, Plan, Planned, make_plan
from winready.engine.rules import RuleOptions, judge_rules
from winready.engine.selection import Selection, select
from winready.engine.upstream import Engine, Prepared, UpstreamOptions, combine, judge_upstream, prepare
from winready.engine.upstream_run import run_upstream
from winready.engine.verdict import judge
from winready.spec.model import Requirement, Specification
from winready.upstream.binary import BinaryError
from winready.upstream.process import GRACE_SECONDS
from winready.upstream.shards import Selected
from winready.upstream.suite import Result

CLEANUP_SECONDS = 300.0
SCALED_EXECS = 12
"""A cluster that runs faster than the clock shares this machine; more commands at once would only wait for it."""


@dataclass(frozen=True)
class Options:
    """How a run is to be done."""

    settings: Settings
    selection: Selection = field(default_factory=Selection)
    nodes: int | None = DEFAULT_NODES
    node_selector: dict[str, str] = field(default_factory=dict)
    allow_disruptive: bool = False
    rules: RuleOptions = field(default_factory=RuleOptions)
    parallel: int = 8
    timeout: float | None = None
    """Wall seconds after which what is not finished is given up."""
    carried: tuple[RequirementResult, ...] = ()
    """Results of an earlier run of the same cluster that are taken over instead of verified again."""
    carried_nodes: tuple[str, ...] = ()
    """Uids of the nodes that those results are about."""
    engine: Engine = "native"
    upstream: UpstreamOptions | None = None
    """How e2e.test is used; needed by every engine but the native one."""
    record: dict[str, Any] = field(default_factory=dict)
    """What else the record of the run should say about how it was started."""


class Run:
    """One run. `stream` tells it as it happens; `stop` ends it early, with cleanup."""

    def __init__(self, client: Client, specification: Specification, options: Options) -> None:
        self.client = client
        self.specification = specification
        self.options = options
        self.requirements: list[Requirement] = select(specification, options.selection)
        if options.settings.timing.scale > 1:
            client.limit_execs(SCALED_EXECS)
        self._began = now()
        self._queue: asyncio.Queue[events.AnyEvent | None] = asyncio.Queue()
        self._stopping = asyncio.Event()
        self._interrupted = False
        self._why_stopped = ""
        self._results: dict[str, RequirementResult] = {}
        self._awaiting_upstream: dict[str, RequirementResult] = {}
        self._prepared: Prepared | None = None

    def stop(self, why: str = "the run was interrupted", *, interrupted: bool = True) -> None:
        """Give up what is not finished, clean up and conclude."""
        if not self._stopping.is_set():
            self._why_stopped, self._interrupted = why, interrupted
            self._stopping.set()

    async def stream(self) -> AsyncIterator[events.AnyEvent]:
        """Do the run; every event once, the verdict last."""
        story = asyncio.create_task(self._story(), name="run")
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            await story
        finally:
            story.cancel()
            await asyncio.gather(story, return_exceptions=True)

    async def _story(self) -> None:
        try:
            self._tell(self._started())
            inventory, plan, world = None, None, None
            try:
                inventory = await take_inventory(self.client, node_selector=self.options.node_selector)
                self._tell(events.InventoryTaken(at_s=self._now(), inventory=inventory))
                self._carry_over(inventory)
                if self.options.upstream is not None:
                    self._prepared = await prepare(self.client, self.options.upstream, inventory)
                plan = self._plan(inventory)
                self._tell(events.PlanMade(at_s=self._now(), plan=plan))
                await self._require_rights()
                world = World(self.client, inventory, self.options.settings, plan.windows_nodes, plan.linux_nodes)
                await self._verify(world, plan)
            except Unauthorized as error:
                words = f"the API server does not accept the credentials ({error.message}); they may have expired"
                self._give_up(plan, ClusterError(words, "log in again, or renew the credentials in the kubeconfig"))
            except BinaryError as error:
                self._give_up(plan, ClusterError(error.message, error.remedy))
            except ClusterError as error:
                self._give_up(plan, error)
            self._conclude(inventory, world, await self._clean_up(world) if world else [])
        finally:
            self._queue.put_nowait(None)

    def _started(self) -> events.RunStarted:
        settings, upstream = self.options.settings, self.options.upstream
        return events.RunStarted(
            at_s=self._now(),
            run_id=settings.run_id,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            tool=f"winready {__version__}",
            spec_version=self.specification.document.version,
            spec_digest=self.specification.digest,
            selection=self.options.selection,
            settings={
                "time_scale": settings.timing.scale,
                "engine": self.options.engine,
                "air_gapped": settings.air_gapped,
                "allow_disruptive": self.options.allow_disruptive,
                "allow_downtime": settings.allow_downtime,
                "allow_small_cluster": self.options.rules.allow_small_cluster,
                "windows_builds": self.options.rules.windows_builds,
                "image_registry": settings.image_registry,
                "times_cluster_s": settings.timing.describe(),
                **({"notes": upstream.notes} if upstream is not None and upstream.notes else {}),
                **self.options.record,
            },
        )

    def _carry_over(self, inventory: Inventory) -> None:
        """Results of an earlier run hold only for the very same nodes."""
        if sorted(self.options.carried_nodes) != sorted(node.uid for node in inventory.nodes):
            return
        wanted = {item.id for item in self.requirements}
        for result in self.options.carried:
            if result.id in wanted and result.outcome in ("passed", "failed", "not-applicable"):
                self._finish(result)

    def _plan(self, inventory: Inventory) -> Plan:
        left = [item for item in self.requirements if item.id not in self._results]
        return plan_run(self.specification, left, inventory, self.options, self._prepared)

    async def _require_rights(self) -> None:
        missing = await missing_rights(self.client)
        if missing:
            raise ClusterError(
                f"rights are missing: {', '.join(missing)}",
                "'winready rbac' prints the least rights that a run needs",
            )

    async def _verify(self, world: World, plan: Plan) -> None:
        for item in plan.requirements:
            if item.action != "run":
                self._finish(unjudged(item, item.action, item.reason, item.next_step))
        async with world:
            checks = load_checks()
            running = [item for item in plan.requirements if item.action == "run"]
            work = asyncio.create_task(self._work(running, checks, world, plan))
            stop = asyncio.create_task(self._stopping.wait())
            await asyncio.wait([work, stop], timeout=self.options.timeout, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not stop.done():
                self.stop(f"the run's time of {self.options.timeout:g} s was over", interrupted=False)
            if not work.done() and self._prepared is not None:
                # e2e.test is ending its spec and cleaning up after it; what it has finished still counts.
                await asyncio.wait([work], timeout=2 * GRACE_SECONDS)
            for task in (work, stop):
                task.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)
            for item in running:
                if item.id not in self._results:
                    given_up = unjudged(item, "blocked", f"{self._why_stopped} before it was judged", "run again")
                    native = self._awaiting_upstream.get(item.id)
                    # What our own check found wrong is wrong, whatever upstream would have said.
                    self._finish(native if native is not None and native.outcome == "failed" else given_up)
            if not work.cancelled() and (error := work.exception()) is not None:
                raise error

    async def _work(self, running: Sequence[Planned], checks: dict[str, Check], world: World, plan: Plan) -> None:
        """Our own checks first, upstream tests after them: they fill nodes and would disturb what checks measure."""
        native = [item for item in running if item.verifier != "upstream"]
        if native:
            checking = asyncio.create_task(self._run_checks(native, checks, world, plan))
            stop = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait([checking, stop], return_when=asyncio.FIRST_COMPLETED)
                if not checking.done():
                    return
                checking.result()
            finally:
                checking.cancel()
                stop.cancel()
                await asyncio.gather(checking, stop, return_exceptions=True)
        upstream = [item for item in running if item.upstream]
        if upstream and self._prepared is not None:
            if native:
                # Some tests fill the cluster, or wait until no pod is pending in it.
                await world.close()
                await self._remove_everything()
            await self._run_upstream(upstream, self._prepared, world)

    async def _run_upstream(self, items: Sequence[Planned], prepared: Prepared, world: World) -> None:
        done: set[str] = set()
        names = list(dict.fromkeys(name for item in items for name in item.upstream))

        def tell(spec: Selected, state: str) -> None:
            if state == "started":
                for item in items:
                    if spec.name in item.upstream and item.verifier == "upstream":
                        self._tell(events.RequirementStarted(at_s=self._now(), id=item.id))
            else:
                done.add(spec.name)
            self._tell(
                events.UpstreamProgress(
                    at_s=self._now(), test=spec.name, text=spec.text, state=state, done=len(done), total=len(names)
                )
            )

        waiting = list(items)
        results: dict[str, Result] = {}

        def finished(some: dict[str, Result]) -> None:
            results.update(some)
            for item in [each for each in waiting if results.keys() >= set(each.upstream)]:
                waiting.remove(item)
                self._finish_upstream(item, judge_upstream(item, prepared, results))

        try:
            await run_upstream(prepared, names, world, self._stopping, tell, finished)
        except (ClusterError, BinaryError) as error:
            for item in waiting:
                self._finish_upstream(item, unjudged(item, "error", error.message, error.remedy))

    def _finish_upstream(self, item: Planned, judged: RequirementResult) -> None:
        native = self._awaiting_upstream.pop(item.id, None)
        self._finish(combine(native, judged) if native is not None else judged)

    async def _run_checks(self, running: Sequence[Planned], checks: dict[str, Check], world: World, plan: Plan) -> None:
        gate = asyncio.Semaphore(self.options.parallel)

        async def one(item: Planned) -> None:
            async with gate:
                self._tell(events.RequirementStarted(at_s=self._now(), id=item.id))
                result = await judge_requirement(checks[item.id], item, world)
                if item.verifier == "both":
                    self._awaiting_upstream[item.id] = result
                    self._tell(events.CheckFinished(at_s=self._now(), result=result))
                else:
                    self._finish(result)

        async with asyncio.TaskGroup() as group:
            for name in plan.fixtures:
                group.create_task(self._watch_fixture(name, world))
            for item in running:
                if not item.disruptive:
                    group.create_task(one(item))
        for item in running:
            if item.disruptive:
                await one(item)

    async def _watch_fixture(self, name: str, world: World) -> None:
        start, pods = now(), world.windows_pods
        fixture = world.fixtures.start(name)
        await asyncio.wait([fixture])
        if fixture.cancelled():
            return
        if (error := fixture.exception()) is not None:
            # Every check that needs it meets the same error and accounts for it.
            self._tell(events.FixtureFailed(at_s=self._now(), name=name, reason=str(error) or repr(error)))
            return
        seconds = round(now() - start, 3)
        made = world.windows_pods - pods
        self._tell(events.FixtureReady(at_s=self._now(), name=name, seconds=seconds, windows_pods=made))

    def _give_up(self, plan: Plan | None, error: ClusterError) -> None:
        """Trouble of ours before any check could run: every requirement says so."""
        planned = plan.requirements if plan else [_unplanned(self.specification, item) for item in self.requirements]
        for item in planned:
            if item.id not in self._results:
                self._finish(unjudged(item, "error", error.message, error.remedy))

    async def _clean_up(self, world: World) -> list[str]:
        start = now()
        left = await self._remove_everything() + world.leftovers
        seconds = round(now() - start, 3)
        self._tell(events.CleanedUp(at_s=self._now(), leftovers=left, seconds=seconds))
        return left

    async def _remove_everything(self) -> list[str]:
        """Remove what the run has made; what is still there."""
        timing = self.options.settings.timing
        return await clean_up(
            self.client,
            run_id=self.options.settings.run_id,
            patience=max(timing.deadline(CLEANUP_SECONDS), 30.0),
            pause=max(timing.wall(timing.table.poll), 0.05),
        )

    def _conclude(self, inventory: Inventory | None, world: World | None, leftovers: list[str]) -> None:
        results = [self._results[item.id] for item in self.requirements if item.id in self._results]
        rules = judge_rules(self.specification, inventory, world, results, self.options.rules)
        for rule in rules:
            self._tell(events.RuleJudged(at_s=self._now(), result=rule))
        verdict = judge(
            self.specification,
            results,
            rules,
            air_gapped=self.options.settings.air_gapped,
            interrupted=self._interrupted,
        )
        pods = world.windows_pods if world else 0
        self._tell(events.RunFinished(at_s=self._now(), verdict=verdict, windows_pods=pods))

    def _finish(self, result: RequirementResult) -> None:
        self._results[result.id] = result
        self._tell(events.RequirementFinished(at_s=self._now(), result=result))

    def _tell(self, event: events.AnyEvent) -> None:
        """Let an event out, once no secret is in it."""
        text = msgspec.json.encode(event).decode()
        clean = without_secrets(text, self.client.transport.credentials.secrets())
        self._queue.put_nowait(event if clean == text else msgspec.json.decode(clean, type=events.AnyEvent))

    def _now(self) -> float:
        return round(now() - self._began, 3)


def plan_run(
    specification: Specification,
    requirements: Sequence[Requirement],
    inventory: Inventory,
    options: Options,
    prepared: Prepared | None = None,
) -> Plan:
    """The plan of a run against a cluster as it was found."""
    return make_plan(
        specification,
        requirements,
        inventory,
        load_checks() if options.engine != "upstream" else {},
        EXPECTED_SECONDS,
        nodes=options.nodes,
        allow_disruptive=options.allow_disruptive,
        upstream=prepared.assignments(item.id for item in requirements) if prepared is not None else None,
    )


def _unplanned(specification: Specification, item: Requirement) -> Planned:
    return Planned(id=item.id, category=item.category, level=specification.level(item), action="blocked")
