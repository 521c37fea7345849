"""Lists in pages, selectors, and watches that miss nothing."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.api.conftest import Http, config, pod
from winready_sandbox.api.store import HISTORY

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def fill(http: Http, count: int) -> None:
    for index in range(count):
        http.local.create("configmaps", config(f"c{index:02}"), "default")


async def test_a_list_names_its_kind_and_its_items_do_not(http: Http) -> None:
    await fill(http, 2)
    listed = (await http.get(MAPS)).body
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert names(listed) == ["c00", "c01"]
    assert all("kind" not in item and "apiVersion" not in item for item in listed["items"])
    assert (await http.get("/api/v1/configmaps/")).body["items"] == listed["items"]


async def test_pages_show_the_state_of_the_first_one(http: Http) -> None:
    await fill(http, 5)
    first = (await http.get(MAPS, limit=2)).body
    assert names(first) == ["c00", "c01"]
    assert first["metadata"]["remainingItemCount"] == 3
    http.local.delete("configmaps", "c02", "default")
    http.local.create("configmaps", config("c01a"), "default")
    http.local.patch("configmaps", "c03", {"data": {"new": "yes"}}, "default")
    token = first["metadata"]["continue"]
    second = (await http.get(MAPS, limit=2, continue_=token)).body
    assert names(second) == ["c02", "c03"]
    assert "data" not in second["items"][1] or "new" not in second["items"][1]["data"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    last = (await http.get(MAPS, limit=2, continue_=second["metadata"]["continue"])).body
    assert names(last) == ["c04"]
    assert "continue" not in last["metadata"]


async def test_a_selective_page_does_not_say_how_many_remain(http: Http) -> None:
    for index in range(3):
        http.local.create("pods", pod(f"p{index}", app="a"), "default")
    page = (await http.get(PODS, limit=1, labelSelector="app=a")).body
    assert page["metadata"]["continue"]
    assert "remainingItemCount" not in page["metadata"]


async def test_an_expired_page_offers_to_go_on_inconsistently(http: Http) -> None:
    await fill(http, 3)
    token = (await http.get(MAPS, limit=1)).body["metadata"]["continue"]
    http.local.delete("configmaps", "c01", "default")
    http.registry.store.expire_history()
    expired = await http.get(MAPS, limit=1, continue_=token)
    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    assert expired.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    rest = (await http.get(MAPS, continue_=expired.body["metadata"]["continue"])).body
    assert names(rest) == ["c02"]


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ({"resourceVersion": "999999"}, 504, "Timeout: Too large resource version: 999999, current: "),
        ({"resourceVersion": "x"}, 400, 'Invalid value: "x"'),
        ({"resourceVersionMatch": "Exact"}, 422, "forbidden unless resourceVersion is provided"),
        ({"resourceVersion": "1", "resourceVersionMatch": "Nearly"}, 422, 'Unsupported value: "Nearly"'),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422, 'forbidden for resourceVersion "0"'),
        ({"continue": "@@@"}, 400, "continue key is not valid"),
        ({"limit": "many"}, 400, 'parsing "many": invalid syntax'),
        ({"labelSelector": "a=="}, 200, ""),
        ({"labelSelector": "a=b=c"}, 400, "found '=', expected: ',' or 'end of string'"),
        ({"labelSelector": "a in b"}, 400, "unable to parse requirement: found 'b' expected: '('"),
        ({"labelSelector": "-a=b"}, 400, "name part must consist of alphanumeric characters"),
        ({"fieldSelector": "data.a=b"}, 400, 'only "metadata.name", "metadata.namespace"'),
        ({"fieldSelector": "nonsense"}, 400, "invalid selector: 'nonsense'; can't understand 'nonsense'"),
    ],
)
async def test_wrong_list_options(http: Http, query: dict[str, str], code: int, text: str) -> None:
    answer = await http.request("GET", MAPS, **query)
    assert answer.code == code
    assert text in answer.text.replace('\\"', '"')


async def test_a_list_at_an_exact_older_version(http: Http) -> None:
    await fill(http, 2)
    version = (await http.get(MAPS)).body["metadata"]["resourceVersion"]
    http.local.delete("configmaps", "c00", "default")
    exact = (await http.get(MAPS, resourceVersion=version, resourceVersionMatch="Exact")).body
    assert names(exact) == ["c00", "c01"]
    assert names((await http.get(MAPS, resourceVersion=version)).body) == ["c01"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("tier=front", ["a"]),
        ("tier==front", ["a"]),
        ("tier!=front", ["b", "c"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (front,back)", ["c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier,size>3", ["b"]),
        ("tier,size<3", ["a"]),
        ("tier=", []),
        ("example.com/on", ["c"]),
        ("tier in (front),size", ["a"]),
        ("", ["a", "b", "c"]),
    ],
)
async def test_label_selectors(http: Http, selector: str, found: list[str]) -> None:
    for name, labels in {
        "a": {"tier": "front", "size": "2"},
        "b": {"tier": "back", "size": "5"},
        "c": {"example.com/on": "1"},
    }.items():
        http.local.create("pods", pod(name, **labels), "default")
    assert names((await http.get(PODS, labelSelector=selector)).body) == found


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.nodeName=n1", ["a"]),
        ("spec.nodeName=", ["c"]),
        ("spec.nodeName!=n1", ["b", "c"]),
        ("metadata.name=b", ["b"]),
        ("metadata.namespace=default,spec.nodeName=n2", ["b"]),
        ("status.phase=Running", ["b"]),
        ("spec.hostNetwork=false", ["a", "b", "c"]),
        ("spec.restartPolicy=Always", ["a", "b", "c"]),
    ],
)
async def test_field_selectors_of_pods(http: Http, selector: str, found: list[str]) -> None:
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "")):
        http.local.create("pods", pod(name, node), "default")
    http.local.patch("pods", "b", {"status": {"phase": "Running"}}, "default", subresource="status")
    assert names((await http.get(PODS, fieldSelector=selector)).body) == found
    assert names((await http.get("/api/v1/pods", fieldSelector=selector)).body) == found
    refused = await http.get(PODS, fieldSelector="spec.color=red")
    assert (refused.code, refused.message) == (400, "field label not supported: spec.color")


async def test_a_watch_continues_where_a_list_ended(http: Http) -> None:
    version = (await http.get(MAPS)).body["metadata"]["resourceVersion"]
    http.local.create("configmaps", config("before"), "default")
    watch = await http.watch(MAPS, resourceVersion=version)
    created = await watch.next()
    assert (created["type"], created["object"]["metadata"]["name"]) == ("ADDED", "before")
    assert created["object"]["kind"] == "ConfigMap"
    http.local.patch("configmaps", "before", {"data": {"a": "b"}}, "default")
    assert (await watch.next())["type"] == "MODIFIED"
    http.local.delete("configmaps", "before", "default")
    deleted = await watch.next()
    assert deleted["type"] == "DELETED"
    assert deleted["object"]["metadata"]["resourceVersion"] == str(http.registry.store.version)
    watch.close()


async def test_a_watch_without_a_version_begins_with_what_is_there(http: Http) -> None:
    await fill(http, 2)
    http.local.create("configmaps", config("elsewhere"), "other")
    watch = await http.watch(MAPS)
    assert [(await watch.next())["object"]["metadata"]["name"] for _ in range(2)] == ["c00", "c01"]
    watch.close()


async def test_a_selective_watch_sees_objects_come_and_go(http: Http) -> None:
    version = http.registry.store.version
    watch = await http.watch(PODS, resourceVersion=version, labelSelector="app=a")
    http.local.create("pods", pod("x", app="b"), "default")
    http.local.patch("pods", "x", {"metadata": {"labels": {"app": "a"}}}, "default")
    http.local.patch("pods", "x", {"metadata": {"labels": {"size": "1"}}}, "default")
    http.local.patch("pods", "x", {"metadata": {"labels": {"app": "b"}}}, "default")
    http.local.delete("pods", "x", "default")
    http.local.create("pods", pod("y", app="a"), "default")
    seen = [await watch.next() for _ in range(4)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in seen] == [
        ("ADDED", "x"),
        ("MODIFIED", "x"),
        ("DELETED", "x"),
        ("ADDED", "y"),
    ]
    assert seen[2]["object"]["metadata"]["labels"] == {"app": "a", "size": "1"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted(set(versions))
    watch.close()


async def test_a_node_sees_only_its_own_pods(http: Http) -> None:
    watch = await http.watch(
        "/api/v1/pods", resourceVersion=http.registry.store.version, fieldSelector="spec.nodeName=n1"
    )
    http.local.create("pods", pod("a", "n2"), "default")
    http.local.create("pods", pod("b"), "other")
    binding = {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n1"}}
    http.local.create("pods/binding", binding, "other")
    event = await watch.next()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")
    watch.close()


async def test_a_bound_pod_leaves_the_watch_of_unbound_ones(http: Http) -> None:
    http.local.create("pods", pod("a"), "default")
    watch = await http.watch("/api/v1/pods", fieldSelector="spec.nodeName=")
    assert (await watch.next())["type"] == "ADDED"
    http.local.create("pods/binding", {"metadata": {"name": "a"}, "target": {"name": "n1"}}, "default")
    assert (await watch.next())["type"] == "DELETED"
    watch.close()


async def test_one_object_can_be_watched(http: Http) -> None:
    await fill(http, 2)
    watch = await http.watch(f"{MAPS}/c01")
    assert (await watch.next())["object"]["metadata"]["name"] == "c01"
    watch.close()


async def test_a_watch_ends_when_its_time_is_over(http: Http) -> None:
    watch = await http.watch(MAPS, timeoutSeconds=1, resourceVersion=http.registry.store.version)
    assert await watch.ended()


async def test_a_watch_from_a_forgotten_version_is_told_410_in_the_stream(http: Http) -> None:
    version = http.registry.store.version
    await fill(http, 1)
    http.registry.store.expire_history()
    watch = await http.watch(MAPS, resourceVersion=version)
    assert watch.response.status == 200
    event = await watch.next()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {version} (")
    assert await watch.ended()


async def test_history_is_kept_only_so_long(http: Http) -> None:
    version = http.registry.store.version
    http.local.create("configmaps", config(), "default")
    for index in range(HISTORY + 1):
        http.local.patch("configmaps", "c", {"data": {"n": str(index)}}, "default")
    watch = await http.watch(MAPS, resourceVersion=version)
    assert (await watch.next())["object"]["code"] == 410
    watch.close()


async def test_initial_events_end_with_a_bookmark(http: Http) -> None:
    await fill(http, 1)
    watch = await http.watch(
        MAPS, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="1"
    )
    assert (await watch.next())["type"] == "ADDED"
    bookmark = await watch.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["object"]["metadata"]["resourceVersion"] == str(http.registry.store.version)
    watch.close()
    assert (await http.get(MAPS, watch="true", sendInitialEvents="true")).code == 422


async def test_bookmarks_tell_a_quiet_watch_how_far_it_is(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winready_sandbox.api.watching.BOOKMARK_SECONDS", 0.02)
    watch = await http.watch(MAPS, allowWatchBookmarks="true", resourceVersion=http.registry.store.version)
    http.local.create("pods", pod(), "default")
    version = http.registry.store.version
    while (event := await watch.next())["object"]["metadata"]["resourceVersion"] != str(version):
        assert event["type"] == "BOOKMARK"
    assert event["object"]["kind"] == "ConfigMap"
    watch.close()


async def test_a_client_that_goes_leaves_no_watch_behind(http: Http) -> None:
    watch = await http.watch(MAPS)
    bucket = http.registry.bucket(http.registry.resources.find("configmaps"))
    assert len(bucket.watches()) == 1
    watch.close()
    while bucket.watches():
        await http.get("/version")


async def test_metadata_only_lists_objects_and_events(http: Http) -> None:
    await fill(http, 1)
    one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    many = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    listed = (await http.get(MAPS, accept=many)).body
    assert (listed["kind"], listed["items"][0]["kind"]) == ("PartialObjectMetadataList", "PartialObjectMetadata")
    single = (await http.get(f"{MAPS}/c00", accept=one)).body
    assert set(single) == {"kind", "apiVersion", "metadata"}
    watch = await http.watch(MAPS, accept=one)
    assert set((await watch.next())["object"]) == {"kind", "apiVersion", "metadata"}
    watch.close()
