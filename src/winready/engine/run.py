"""A run from start to verdict. Read top to bottom, this is the story of a run; nothing in it prints."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncGenerator, Sequence
from typing import Literal, TypeVar

import msgspec

from winready.checks.registry import Check, load_checks, load_feature_checks
from winready.checks.world import World
from winready.cluster.cleanup import clean_up
from winready.cluster.client import Client
from winready.cluster.errors import ClusterError
from winready.cluster.evidence import bounded
from winready.cluster.finishing import Stopped, to_the_end, unless
from winready.cluster.inventory import Inventory
from winready.cluster.prepared import empty
from winready.cluster.secrets import without_secrets
from winready.cluster.timing import now
from winready.cluster.transport import OUTAGE_SECONDS
from winready.engine import defaults, events
from winready.engine.answering import Answering
from winready.engine.checking import LOOK_AT_API, REPORT_IT, judge_requirement, own_failure, unjudged
from winready.engine.coverage import choose
from winready.engine.facts import Facts
from winready.engine.features import Showing, Wanted
from winready.engine.options import Options, Unmet
from winready.engine.outcomes import FeatureResult, Outcome, RequirementResult
from winready.engine.plan import FEATURE, Plan, Planned, tested_feature, unplanned
from winready.engine.planning import checked_features, look_at, plan_run
from winready.engine.rights import lacking, require_rights
from winready.engine.rules import judge_rules
from winready.engine.selection import select
from winready.engine.sights import look
from winready.engine.starting import started
from winready.engine.verdict import judge, refused
from winready.engine.with_upstream.combine import combine
from winready.engine.with_upstream.prepare import Prepared, prepare
from winready.engine.with_upstream.verify import verify_upstream
from winready.engine.workloads import answers, exit_with
from winready.spec.model import Requirement, Specification
from winready.upstream.binary import BinaryError
from winready.upstream.process import GRACE_SECONDS
from winready.upstream.shards import Selected

SCALED_EXECS = 12
"""A cluster that runs faster than the clock shares this machine; more commands at once would only wait for it."""

Told = TypeVar("Told", bound=events.AnyEvent)


class Run:
    """One run. `stream` tells it as it happens; `stop` ends it early, with cleanup."""

    def __init__(self, client: Client, specification: Specification, options: Options) -> None:
        self.client = client
        self.specification = specification
        self.options = options
        self.requirements: list[Requirement] = select(specification, options.selection)
        if options.settings.timing.scale > 1:
            client.limit_execs(SCALED_EXECS)
        client.transport.patience = OUTAGE_SECONDS
        self._began = now()
        self._queue: asyncio.Queue[events.AnyEvent | None] = asyncio.Queue()
        self._stopping = asyncio.Event()
        self._interrupted = False
        self._why_stopped = "the run was given up"
        self._when_stopped: Literal["blocked", "error"] = "blocked"
        self._trouble: tuple[str, str] | None = None
        """What kept the run from going on, and what to do about it."""
        self._facts = Facts()
        self._results: dict[str, RequirementResult] = {}
        self._features = Showing(options.features, self._finish_feature)
        self._shown: list[FeatureResult] = []
        self._answering = Answering(options.workloads, self._tell, self._now)
        self._awaiting_upstream: dict[str, RequirementResult] = {}
        self._prepared: Prepared | None = None
        self._plan: Plan | None = None
        self._world: World | None = None

    def stop(self, why: str = "the run was interrupted", *, interrupted: bool = True, trouble: bool = False) -> bool:
        """Give up what is not finished, clean up and conclude; False when that is going on already.

        ``trouble``: because something of ours is wrong.
        """
        if self._stopping.is_set():
            return False
        self._why_stopped, self._interrupted = why, interrupted
        self._when_stopped = "error" if trouble else "blocked"
        self._stopping.set()
        return True

    async def stream(self) -> AsyncGenerator[events.AnyEvent, None]:
        """Do the run; every event once, the verdict last. Whoever stops listening waits until it is cleaned up."""
        story = asyncio.create_task(self._story(), name="run")
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            await story
        finally:
            story.cancel()
            await asyncio.gather(story, return_exceptions=True)

    async def _story(self) -> None:
        """The one way through a run, and the one way out of it: whatever happens, cleanup and a verdict end it."""
        try:
            await self._unfold()
        except Stopped:
            # Why, and what becomes of each requirement, stands where the run was told to stop.
            pass
        except ClusterError as error:
            self._trouble = error.message, error.remedy or LOOK_AT_API
        except BinaryError as error:
            self._trouble = error.message, error.remedy
        except Exception as error:
            self._crashed(error)
            self._trouble = own_failure(error), REPORT_IT
        finally:
            await to_the_end(self._wind_up())

    async def _unfold(self) -> None:
        self._tell(started(self.specification, self.requirements, self.options, self._now()))
        self._answering.begin()
        inventory = await unless(self._stopping, look_at(self.client, self.requirements, self.options))
        self._tell(events.InventoryTaken(at_s=self._now(), inventory=inventory))
        features = self._carry_over(inventory)
        self._prepared = self.options.prepared
        if self._prepared is None and self.options.upstream is not None:
            self._prepared = await unless(self._stopping, prepare(self.client, self.options.upstream, inventory))
        checks = load_feature_checks() if self.options.features and self.options.engine != "upstream" else {}
        selected = [item.id for item in self.requirements]
        lack = lacking(inventory, checked_features(self.options), self.options)
        self._features.begin(inventory.version, selected, features, checks, self._feature_tests, lack)
        left = [item for item in self.requirements if item.id not in self._results]
        plan = self._plan = plan_run(self.specification, left, inventory, self.options, self._prepared)
        self._tell(events.PlanMade(at_s=self._now(), plan=plan))
        if self.options.unmet is not None:
            self._fail_all(plan, self.options.unmet)
            return
        require_rights(inventory, self.options)
        self._world = World(self.client, inventory, self.options.of_checks, plan.windows_nodes, plan.linux_nodes)
        await self._verify(self._world, plan)

    def _carry_over(self, inventory: Inventory) -> tuple[FeatureResult, ...]:
        """Results of an earlier run hold only for the very same nodes, and where the same ones are judged.

        Returns those of features, which are to be told once it is known what shows the others.
        """
        carried = self.options.carried
        if carried is None or sorted(carried.nodes) != sorted(node.uid for node in inventory.nodes):
            return ()
        if carried.judged != {node.name for node in choose(inventory.usable("windows"), self.options.nodes)}:
            return ()
        if carried.sights:
            self._tell(events.PodsSeen(at_s=self._now(), sights=carried.sights))
        self._answering.carry_over(carried.tried)
        wanted = {item.id: item for item in self.requirements}
        for result in carried.results:
            if result.id not in wanted or result.outcome not in ("passed", "failed", "not-applicable"):
                continue
            # What did not apply because nobody named it may apply now.
            now_named = self.options.named.intersection(wanted[result.id].needs.features)
            if result.outcome != "not-applicable" or not now_named:
                self._finish(result)
        return carried.features

    def _feature_tests(self, wanted: Wanted) -> list[str]:
        """The upstream tests that can show a feature here."""
        return self._prepared.usable(wanted.tests) if self._prepared is not None else []

    def _fail_all(self, plan: Plan, unmet: Unmet) -> None:
        """Nothing is started for what cannot be; what does not apply here still does not."""
        for item in plan.requirements:
            if item.action == "not-applicable":
                self._finish(unjudged(item, item.action, item.reason, item.next_step))
                continue
            failed = unjudged(item, "failed", unmet.reason, unmet.next_step)
            self._finish(msgspec.structs.replace(failed, expected=unmet.expected, observed=unmet.observed))

    async def _verify(self, world: World, plan: Plan) -> None:
        for item in plan.requirements:
            if item.action != "run":
                self._finish(unjudged(item, item.action, item.reason, item.next_step))
        async with world:
            running = [item for item in plan.requirements if item.action == "run"]
            work = asyncio.create_task(self._work(running, load_checks(), world, plan))
            stop = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait([work, stop], timeout=self.options.timeout, return_when=asyncio.FIRST_COMPLETED)
                if not work.done() and not stop.done():
                    self.stop(f"the run's time of {self.options.timeout:g} s was over", interrupted=False)
                if not work.done() and self._prepared is not None:
                    # e2e.test is ending its spec and cleaning up after it; what it has finished still counts.
                    await asyncio.wait([work], timeout=2 * GRACE_SECONDS)
            finally:
                for task in (work, stop):
                    task.cancel()
                await asyncio.gather(work, stop, return_exceptions=True)
            if not work.cancelled() and (error := work.exception()) is not None:
                raise error

    async def _work(self, running: Sequence[Planned], checks: dict[str, Check], world: World, plan: Plan) -> None:
        """Our own checks first, upstream tests after them: they fill nodes and would disturb what checks measure."""
        native = [item for item in running if item.verifier != "upstream"]
        if native or self._features.waiting("check"):
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
        upstream += [tested_feature(each.id, self._feature_tests(each)) for each in self._features.waiting("upstream")]
        testing = bool(upstream) and self._prepared is not None
        if world.namespaces and (testing or self.options.attempts):
            # Some tests fill the cluster, or wait until no pod is pending in it; and workloads need their room.
            await world.close()
            await self._remove_everything()
        await self._answering.try_all(world, self.options.attempts)
        if testing and self._prepared is not None:
            await self._run_upstream(upstream, self._prepared, world)

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
            if world.windows_nodes:
                group.create_task(self._features.check(world, load_feature_checks(), gate))
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

    async def _run_upstream(self, items: Sequence[Planned], prepared: Prepared, world: World) -> None:
        def progress(spec: Selected, state: str, done: int, total: int) -> None:
            if state == "started":
                for item in items:
                    if spec.name in item.upstream and item.verifier == "upstream" and item.category != FEATURE:
                        self._tell(events.RequirementStarted(at_s=self._now(), id=item.id))
            self._tell(
                events.UpstreamProgress(
                    at_s=self._now(), test=spec.name, text=spec.text, state=state, done=done, total=total
                )
            )

        def finish(item: Planned, judged: RequirementResult) -> None:
            if item.category == FEATURE:
                self._features.tested(item.id, judged)
                return
            native = self._awaiting_upstream.pop(item.id, None)
            self._finish(combine(native, judged) if native is not None else judged)

        await verify_upstream(items, prepared, world, self._stopping, progress, finish)

    def _crashed(self, error: Exception) -> None:
        trace = bounded("".join(traceback.format_exception(error)))
        self._tell(events.Crashed(at_s=self._now(), error=own_failure(error), trace=trace))

    def _give_up(self) -> None:
        """Every requirement that has no outcome by now says why."""
        run_id, options = self.options.settings.run_id, self.options.resume_with
        again = "run again" if options is None else f"'winready run --resume {run_id}{options}' does the rest"
        reason, next_step = self._trouble or (f"{self._why_stopped} before it was judged", again)
        outcome: Outcome = "error" if self._trouble else self._when_stopped
        planned = {item.id: item for item in self._plan.requirements} if self._plan else {}
        for item in self.requirements:
            if item.id in self._results:
                continue
            native = self._awaiting_upstream.get(item.id)
            if native is not None and native.outcome == "failed":
                # What our own check found wrong is wrong, whatever upstream would have said.
                self._finish(native)
            else:
                one = planned.get(item.id) or unplanned(self.specification, item)
                self._finish(unjudged(one, outcome, reason, next_step))
        if self._world is not None and not self._world.windows_nodes and not self._trouble:
            reason, next_step = "the cluster has no usable Windows node", "'winready doctor' tells why"
        self._features.give_up(outcome, reason, next_step)

    async def _wind_up(self) -> None:
        """Leave nothing behind, and say what the run came to."""
        leftovers: list[str] = []
        try:
            try:
                self._give_up()
            finally:
                if self._world:
                    leftovers = await self._clean_up(self._world)
            self._conclude(leftovers)
        except Exception as error:
            self._crashed(error)
            verdict = refused(judge(self.specification, [], []), own_failure(error))
            self._tell(events.RunFinished(at_s=self._now(), verdict=verdict, windows_pods=0))
        finally:
            self._queue.put_nowait(None)

    async def _clean_up(self, world: World) -> list[str]:
        start = now()
        try:
            left = await self._remove_everything() + world.leftovers
        except Exception as error:
            left = [f"unknown: {own_failure(error)}", *world.leftovers]
        seconds = round(now() - start, 3)
        self._tell(events.CleanedUp(at_s=self._now(), leftovers=left, seconds=seconds))
        return left

    async def _remove_everything(self) -> list[str]:
        """Remove what the run has made; what is still there."""
        settings = self.options.settings
        timing, run_id = settings.timing, settings.run_id
        patience = max(timing.deadline(defaults.CLEANUP_SECONDS), 30.0)
        pause = max(timing.wall(timing.table.poll), 0.05)
        if settings.namespace_prefix:
            made = {space.name: space.made for space in self._world.namespaces} if self._world else {}
            return await empty(self.client, made, run_id=run_id, patience=patience, pause=pause)
        steered = self.options.upstream is not None
        return await clean_up(self.client, run_id=run_id, patience=patience, pause=pause, steered=steered)

    def _conclude(self, leftovers: list[str]) -> None:
        self._tell_sights()
        results = [self._results[item.id] for item in self.requirements]
        rules = judge_rules(self.specification, self._facts, results)
        for rule in rules:
            self._tell(events.RuleJudged(at_s=self._now(), result=rule))
        verdict = judge(
            self.specification,
            results,
            rules,
            air_gapped=self.options.settings.air_gapped,
            interrupted=self._interrupted,
            leftovers=bool(leftovers),
            coverage=self._facts.coverage,
        )
        pods = self._world.windows_pods if self._world else 0
        shown = answers(results, self._shown)
        judged = self._answering.judge(shown, [node.name for node in self._facts.nodes])
        self._tell(events.RunFinished(at_s=self._now(), verdict=exit_with(verdict, judged), windows_pods=pods))

    def _finish(self, result: RequirementResult) -> None:
        # What the rules need to know of a result stands before it: a run that is killed right after can be resumed.
        self._tell_sights()
        event = self._tell(events.RequirementFinished(at_s=self._now(), result=result))
        self._results[result.id] = event.result
        self._features.heard(event.result)

    def _finish_feature(self, result: FeatureResult) -> None:
        self._tell_sights()
        self._shown.append(self._tell(events.FeatureFinished(at_s=self._now(), result=result)).result)

    def _tell_sights(self) -> None:
        if self._world and (new := look(self._world).beyond(self._facts.sights)):
            self._tell(events.PodsSeen(at_s=self._now(), sights=new))

    def _tell(self, event: Told) -> Told:
        """Let an event out, once no secret is in it; what is judged is what was told."""
        text = msgspec.json.encode(event).decode()
        clean = without_secrets(text, [*self.client.transport.credentials.secrets(), *self.options.secrets])
        if clean != text:
            event = msgspec.json.decode(clean, type=type(event))
        self._facts.apply(event)
        self._queue.put_nowait(event)
        return event

    def _now(self) -> float:
        return round(now() - self._began, 3)
