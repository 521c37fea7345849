"""What a run says about the place that its results are sent to."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from winready.cli.options import fail, say
from winready.cli.places import place_elsewhere, told

if TYPE_CHECKING:
    from winready.report.sharing.sending import Sender
    from winready.store.addresses import Place


def sending(place: Place, folder: Path) -> Sender:
    """Who sends a run; a place that nothing can ever be sent to ends the command before the run begins."""
    from winready.report.sharing.sending import PATIENCE, Sender
    from winready.store.objects import open_place

    with told():
        objects = open_place(place, PATIENCE)
    return Sender(objects, folder, _complain)


def say_sent(sender: Sender, folder: Path, *, quiet: bool) -> None:
    """Wait until a run is sent, and say what came of it; none of it is part of the verdict."""
    try:
        whole = sender.finish()
    except KeyboardInterrupt:
        whole = False
    with suppress(OSError):
        if not whole:
            rest = f"winready history push {folder.name} --report-dir {quote(sender.place.address)}"
            say(f"to send the rest: {rest}", err=True)
        elif not quiet:
            say(f"sent: {sender.place.below(folder.name).address}")


def prow_place(given: str | None) -> Place | None:
    """``--prow``; a mistake ends the command."""
    if given is None:
        return None
    place = place_elsewhere(given)
    if place is None:
        remedy = "'winready report -o prow --to DIR' writes into a folder"
        fail(f"--prow is an address: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER, not {given[:80]!r}", remedy)
    return place


def send_build(builds: Place, folder: Path) -> None:
    """Write a run as a build of a Prow job; what keeps it from there is said, and changes nothing."""
    from winready.cli.history_push import push_build
    from winready.store.errors import StoreError

    try:
        push_build(builds, folder)
    except (StoreError, OSError) as error:
        _complain(f"note: the build cannot be written to {builds.address}: {error}; the verdict does not depend on it")


def _complain(text: str) -> None:
    with suppress(OSError):
        say(text, err=True)
