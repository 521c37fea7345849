"""CPU and memory limits of Windows pods are kept over time, as the kubelet measures it.

Each container of a pod has its own limit, a container that was started again still has it, and it is there after
minutes as it was at the start.
"""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.core_scheduling.cpu_limits import judge_cpu
from winready.checks.core_scheduling.memory_limits import judge_memory
from winready.checks.registry import check
from winready.cluster.probes import every


@check("core.scheduling.limits-honoured", expected_s=200, windows_pods_per_node=2)
async def limits_honoured(ctx: Context) -> None:
    """On each judged node: containers that burn a core get what their limits say, and memory ends at its limit."""
    nodes = list(enumerate(ctx.windows_nodes, 1))
    await every(*(judge(ctx, node, number) for number, node in nodes for judge in (judge_cpu, judge_memory)))
