"""Rights that are missing: who needs them, and the command that grants them, known before the first pod."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from winready.checks.rights import beyond, rights_needed
from winready.cluster.errors import ClusterError
from winready.cluster.inventory import Inventory
from winready.engine.options import Options
from winready.engine.plan import Lacking

WHOSE = "to the service account winready; --name, --namespace and --user say to whom else"


class RightsMissing(ClusterError):
    """Rights are missing that no run can do without."""


def granting(options: Options) -> str:
    """What to do where rights of this run are missing."""
    return f"'{_command(options, options.settings.namespace_prefix)}' grants what this run needs, {WHOSE}"


def lacking(inventory: Inventory, names: Sequence[str], options: Options) -> dict[str, Lacking]:
    """By requirement, or feature, the rights that are missing to check it."""
    settings = options.settings
    needed, missing = rights_needed(names, settings), set(inventory.denied)
    far = beyond(names, settings)
    found = {}
    for name, rights in needed.of_checks.items():
        texts = dict.fromkeys(str(right) for right in [*needed.everywhere, *rights] if str(right) in missing)
        # What reaches beyond prepared namespaces is the reason; that nothing was prepared for it follows.
        if strong := [str(right) for right in far.get(name, ()) if str(right) in missing]:
            found[name] = Lacking(f"{', '.join(strong)} in the whole cluster", _whole(options))
        elif texts:
            found[name] = Lacking(", ".join(texts), granting(options))
    return found


def unhelped(inventory: Inventory, names: Sequence[str], options: Options) -> Lacking | None:
    """Those of the missing rights that stop nothing: the run will only know less."""
    needed = rights_needed(names, options.settings)
    stopping = {str(right) for rights in (needed.everywhere, *needed.of_checks.values()) for right in rights}
    missing = [right for right in inventory.denied if right not in stopping]
    return Lacking(", ".join(missing), granting(options)) if missing else None


def require_rights(inventory: Inventory, options: Options) -> None:
    """Raise `ClusterError` where a right is missing that no run can do without."""
    asked = rights_needed([], options.settings).everywhere
    if missing := [str(right) for right in asked if str(right) in inventory.denied]:
        raise RightsMissing(f"rights are missing: {', '.join(missing)}", granting(options))


def _whole(options: Options) -> str:
    command = _command(options, "")
    return f"it cannot be verified with --namespace-prefix; without it, '{command}' grants what it needs, {WHOSE}"


def _command(options: Options, prefix: str) -> str:
    return f"{shlex.join(['winready', 'rbac', *_words(options, prefix)])} | kubectl apply -f -"


def _words(options: Options, prefix: str) -> Iterator[str]:
    """What 'winready rbac' is to be told about a run with these options."""
    chosen = options.selection
    if chosen.profile == "full" and not chosen.categories and not chosen.requirements:
        yield from ("--profile", "full")
    for option, names in (
        ("--category", chosen.categories),
        ("--requirement", chosen.requirements),
        ("--skip", chosen.skip),
        ("--feature", chosen.features),
    ):
        for name in names:
            yield from (option, name)
    if options.allow_disruptive:
        yield "--allow-disruptive"
    if options.settings.active_directory is not None:
        yield from ("--active-directory", "FILE")
    if prefix:
        yield from ("--namespace-prefix", prefix)
