"""The plan of a run from its options: with the tables of checks, and with what e2e.test can do."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from winready.checks.fixtures import EXPECTED_SECONDS
from winready.checks.registry import load_checks, load_feature_checks
from winready.checks.rights import EVERY_RUN, rights_needed
from winready.cluster.client import Client
from winready.cluster.errors import ANONYMOUS, Forbidden
from winready.cluster.inventory import Inventory, read_node, take_inventory
from winready.cluster.resources import NODES
from winready.cluster.rights import denied
from winready.cluster.timing import now
from winready.engine.options import Options
from winready.engine.plan import Plan, PlannedFeature, make_plan
from winready.engine.rights import RightsMissing, granting, lacking, unhelped
from winready.engine.with_upstream.prepare import Prepared
from winready.spec.model import Requirement, Specification


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
        named=options.named,
        lacking=lacking(inventory, [item.id for item in requirements], options),
        unhelped=unhelped(inventory, [*(item.id for item in requirements), *checked_features(options)], options),
        upstream=prepared.assignments(item.id for item in requirements) if prepared is not None else None,
        features=[
            PlannedFeature(
                id=each.id,
                requirements=list(each.requirements),
                check=each.check and options.engine != "upstream",
                tests=prepared.usable(each.tests) if prepared is not None else [],
            )
            for each in options.features
        ],
        feature_checks=load_feature_checks() if options.features else {},
    )


async def look_at(client: Client, requirements: Sequence[Requirement], options: Options) -> Inventory:
    """The cluster as a run finds it, unless somebody has looked for it."""
    if options.inventory is not None:
        return options.inventory
    await _until_back(client, options)
    return await with_rights(client, await _inventory(client, options), requirements, options)


async def _inventory(client: Client, options: Options) -> Inventory:
    """The cluster as it is; who may not even see its nodes is told which right that takes, and where it is from."""
    try:
        return await take_inventory(client, node_selector=options.node_selector)
    except Forbidden as error:
        if ANONYMOUS not in error.message and (missing := [str(right) for right in await denied(client, EVERY_RUN)]):
            raise RightsMissing(f"rights are missing: {', '.join(missing)}", granting(options)) from None
        raise


async def _until_back(client: Client, options: Options) -> None:
    """Wait until nodes are back that a run may have rebooted before it ended early; one that stays away is judged."""
    carried, timing = options.carried, options.settings.timing
    if carried is None or not carried.rebooting:
        return
    # A node that is about to reboot goes on for a while, and it takes another while until anybody says that it is down.
    calm = timing.deadline(timing.table.reboot_delay + timing.table.node_silent)
    since = now()
    async for _ in timing.attempts(timing.table.reboot_back, every=timing.table.reboot_look):
        nodes = [read_node(raw) for raw in await client.list(NODES)]
        if any(node.away for node in nodes if node.name in carried.judged):
            since = now()
        elif now() >= since + calm:
            return


async def with_rights(
    client: Client, inventory: Inventory, requirements: Sequence[Requirement], options: Options
) -> Inventory:
    """The inventory, and what of the rights that a run of these requirements uses is not granted."""
    native = requirements if options.engine != "upstream" else []
    wanted = [item.id for item in native if options.allow_disruptive or not item.disruptive]
    asked = rights_needed([*wanted, *checked_features(options)], options.settings).all
    return msgspec.structs.replace(inventory, denied=[str(right) for right in await denied(client, asked)])


def checked_features(options: Options) -> list[str]:
    """The features that a run shows by checks of their own."""
    return [each.id for each in options.features if each.check and options.engine != "upstream"]
