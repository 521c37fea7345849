"""Random sequences of writes, watches and relists against a plain model of what an API promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.paging import ListOptions

NAMES = st.sampled_from(["a", "b", "c"])
NAMESPACES = st.sampled_from(["one", "two"])
COLORS = st.sampled_from(["red", "green"])
SELECTORS = st.sampled_from(["", "color=red", "color!=red", "color in (green)"])
Key = tuple[str, str]


def selects(selector: str, color: str) -> bool:
    return {"": True, "color=red": color == "red", "color!=red": color != "red"}.get(selector, color == "green")


class Follower:
    """A client that lists once and then lives by its watch alone."""

    def __init__(self, client: LocalClient, namespace: str, selector: str) -> None:
        self.client, self.namespace, self.selector = client, namespace, selector
        self.seen: dict[Key, dict[str, Any]] = {}
        self.newest = 0
        self.relist()

    def relist(self) -> None:
        items, version = self.client.list("configmaps", self.namespace, labels=self.selector)
        self.seen = {key_of(item): item for item in items}
        self.newest = int(version)
        self.watch = self.client.watch("configmaps", self.namespace, since=version, labels=self.selector)

    async def follow(self) -> None:
        """Take every event that is there, and check each against what is known."""
        watch: Any = self.watch
        while (event := watch.ready()) is not None:
            kind, entry = event
            version = int(entry.obj["metadata"]["resourceVersion"])
            assert version > self.newest, "an event came twice or out of order"
            self.newest = version
            known = entry.key in self.seen
            assert known is (kind != "ADDED"), f"{kind} of an object that is {'known' if known else 'unknown'}"
            if kind == "DELETED":
                del self.seen[entry.key]
            else:
                self.seen[entry.key] = entry.obj


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns, or the error that it raises."""
    try:
        return call()
    except ApiError as error:
        return error


def key_of(obj: dict[str, Any]) -> Key:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def version_of(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])


class ApiMachine(RuleBasedStateMachine):
    """The model: a dict of colors and the versions that clients remember."""

    followers = Bundle("followers")
    pages = Bundle("pages")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.registry = new_registry(history=3)
        self.client = LocalClient(self.registry)
        for name in ("one", "two"):
            self.client.create("namespaces", {"metadata": {"name": name}})
        self.model: dict[Key, str] = {}
        self.remembered: dict[Key, dict[str, Any]] = {}
        self.open: list[Follower] = []
        self.newest = self.registry.store.version

    def teardown(self) -> None:
        self.run(self._all_agree())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop.run_until_complete(work)

    async def _all_agree(self) -> None:
        for follower in self.open:
            await follower.follow()
            expected = {
                key
                for key, color in self.model.items()
                if follower.namespace in ("", key[0]) and selects(follower.selector, color)
            }
            assert set(follower.seen) == expected, "a watch lost or invented something"

    def _wrote(self, obj: dict[str, Any]) -> None:
        version = int(obj["metadata"]["resourceVersion"])
        assert version > self.newest, "versions only grow"
        self.newest = version

    @rule(namespace=NAMESPACES, name=NAMES, color=COLORS)
    def create(self, namespace: str, name: str, color: str) -> None:
        key = (namespace, name)
        body = {"metadata": {"name": name, "labels": {"color": color}}}
        made = attempt(lambda: self.client.create("configmaps", body, namespace))
        if isinstance(made, ApiError):
            assert (made.reason, key in self.model) == ("AlreadyExists", True)
            return
        assert key not in self.model
        self._wrote(made)
        self.model[key] = color
        self.remembered.setdefault(key, made)

    @rule(namespace=NAMESPACES, name=NAMES)
    def remember(self, namespace: str, name: str) -> None:
        if (namespace, name) in self.model:
            self.remembered[namespace, name] = self.client.get("configmaps", name, namespace)

    @rule(namespace=NAMESPACES, name=NAMES, color=COLORS)
    def update_from_memory(self, namespace: str, name: str, color: str) -> None:
        """A write from a remembered state is accepted exactly when nothing happened since."""
        key = (namespace, name)
        known = self.remembered.get(key)
        if known is None:
            return
        current = self.client.get("configmaps", name, namespace) if key in self.model else None
        wanted = {**known, "metadata": {**known["metadata"], "labels": {"color": color}}}
        written = attempt(lambda: self.client.update("configmaps", wanted))
        newest = current is not None and version_of(current) == version_of(known)
        assert newest is not isinstance(written, ApiError), "only a write from the newest state goes in"
        if isinstance(written, ApiError):
            assert written.reason == ("NotFound" if current is None else "Conflict")
            return
        if self.model[key] != color:
            self._wrote(written)
        else:
            assert written is current, "a write that changes nothing makes no version"
        self.model[key] = color

    @rule(namespace=NAMESPACES, name=NAMES, color=COLORS)
    def patch(self, namespace: str, name: str, color: str) -> None:
        patch = {"metadata": {"labels": {"color": color}}}
        written = attempt(lambda: self.client.patch("configmaps", name, patch, namespace))
        if isinstance(written, ApiError):
            assert (written.reason, (namespace, name) in self.model) == ("NotFound", False)
            return
        if self.model[namespace, name] != color:
            self._wrote(written)
        self.model[namespace, name] = color

    @rule(namespace=NAMESPACES, name=NAMES)
    def delete(self, namespace: str, name: str) -> None:
        deleted = attempt(lambda: self.client.delete("configmaps", name, namespace))
        if isinstance(deleted, ApiError):
            assert (deleted.reason, (namespace, name) in self.model) == ("NotFound", False)
            return
        del self.model[namespace, name]

    @rule(target=followers, namespace=st.sampled_from(["", "one"]), selector=SELECTORS)
    def begin_to_watch(self, namespace: str, selector: str) -> Follower:
        follower = Follower(self.client, namespace, selector)
        self.open.append(follower)
        return follower

    @rule(follower=followers, writes=st.lists(st.tuples(NAMESPACES, NAMES, COLORS), max_size=8))
    def break_off_and_come_back(self, follower: Follower, writes: list[tuple[str, str, str]]) -> None:
        """A watch that is resumed from its last event goes on without a gap, or says 410."""
        self.run(follower.follow())
        for namespace, name, color in writes:
            if self.model.get((namespace, name)) == color:
                self.delete(namespace, name)
            elif (namespace, name) in self.model:
                self.patch(namespace, name, color)
            else:
                self.create(namespace, name, color)
        where, since = follower.namespace, str(follower.newest)
        watch = attempt(lambda: self.client.watch("configmaps", where, since=since, labels=follower.selector))
        if isinstance(watch, ApiError):
            assert watch.code == 410
            follower.relist()
        else:
            follower.watch = watch

    @rule(target=pages, limit=st.integers(1, 2))
    def first_page(self, limit: int) -> tuple[str, int, set[Key]]:
        found = self.registry.list(self.registry.resources.find("configmaps"), "", ListOptions(limit=limit))
        return found.continue_, limit, set(self.model) - {entry.key for entry in found.entries}

    @rule(page=consumes(pages))
    def rest_of_the_pages(self, page: tuple[str, int, set[Key]]) -> None:
        """The remaining pages hold exactly what was there when the first one was read, or say 410."""
        token, limit, left = page
        while token:
            options = ListOptions(limit=limit, continue_=token)
            found = attempt(partial(self.registry.list, self.registry.resources.find("configmaps"), "", options))
            if isinstance(found, ApiError):
                assert found.code == 410
                return
            keys = {entry.key for entry in found.entries}
            assert keys <= left
            left -= keys
            token = found.continue_
        assert not left

    @invariant()
    def lists_agree_with_the_model(self) -> None:
        items, version = self.client.list("configmaps")
        assert {key_of(item): item["metadata"]["labels"]["color"] for item in items} == self.model
        assert int(version) >= self.newest
        self.newest = max(self.newest, int(version))


TestModel = ApiMachine.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
