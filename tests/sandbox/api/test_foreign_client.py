"""A client written by others, which knows nothing of this server: lightkube."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.config import models
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod
from lightkube.types import PatchType

from winready_sandbox.api.assembly import install_access, new_registry
from winready_sandbox.api.authn import Authenticator
from winready_sandbox.api.bootstrap import fill
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.identity import MASTERS, User
from winready_sandbox.api.rbac import Authorizer
from winready_sandbox.api.registry import Registry
from winready_sandbox.api.server import ApiServer
from winready_sandbox.api.tokens import TokenIssuer
from winready_sandbox.pki import new_key


@dataclass
class Cluster:
    """A cluster with access control and two clients of it."""

    registry: Registry
    admin: Any
    guest: Any


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    registry = new_registry()
    local = LocalClient(registry)
    issuer = TokenIssuer(new_key(), local)
    authorizer = Authorizer(local)
    people = {"admin-token": User("admin", (MASTERS,)), "guest-token": User("guest")}
    authenticator = Authenticator(issuer, people)
    install_access(registry, authenticator, authorizer, issuer)
    fill(local, service_ip="10.96.0.1", server_ip="10.250.0.1", server_port=6443, ca=b"")
    server = ApiServer(registry, authenticator=authenticator, authorizer=authorizer)
    url = f"http://127.0.0.1:{await server.start()}"

    def client(token: str) -> AsyncClient:
        kubeconfig = KubeConfig.from_one(cluster=models.Cluster(server=url), user=models.User(token=token))
        return AsyncClient(kubeconfig, trust_env=False)

    admin, guest = client("admin-token"), client("guest-token")
    yield Cluster(registry, admin, guest)
    for each in (admin, guest):
        await each.close()
    await server.stop()


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


async def test_it_reads_lists_in_pages(cluster: Cluster) -> None:
    for number in range(7):
        await cluster.admin.create(config_map(f"c{number}"))
    found = [item.metadata.name async for item in cluster.admin.list(ConfigMap, namespace="default", chunk_size=2)]
    assert found == [f"c{number}" for number in range(7)]


async def test_it_watches_through_a_410(cluster: Cluster) -> None:
    admin = cluster.admin
    first = await admin.create(config_map("first"))
    await admin.create(config_map("second"))
    cluster.registry.store.expire_history()
    with pytest.raises(ApiError) as expired:
        async for _ in admin.watch(ConfigMap, namespace="default", resource_version=first.metadata.resourceVersion):
            pass
    assert expired.value.status.code == 410
    seen = []
    async with asyncio.timeout(60):
        async for kind, item in admin.watch(ConfigMap, namespace="default"):
            seen.append((kind, item.metadata.name))
            if item.metadata.name == "second":
                await admin.create(config_map("third"))
            if item.metadata.name == "third":
                break
    assert seen == [("ADDED", "first"), ("ADDED", "second"), ("ADDED", "third")]


async def test_it_patches_in_every_way(cluster: Cluster) -> None:
    admin = cluster.admin
    await admin.create(config_map("c", a="1"))
    merged = await admin.patch(ConfigMap, "c", {"data": {"b": "2"}}, namespace="default", patch_type=PatchType.MERGE)
    assert merged.data == {"a": "1", "b": "2"}
    operations = [{"op": "remove", "path": "/data/a"}]
    cut = await admin.patch(ConfigMap, "c", operations, namespace="default", patch_type=PatchType.JSON)
    assert cut.data == {"b": "2"}
    applied = await admin.apply(config_map("c", c="3"), field_manager="lightkube")
    assert applied.data == {"b": "2", "c": "3"}
    with pytest.raises(ApiError) as conflict:
        await admin.apply(config_map("c", b="9"), field_manager="lightkube")
    assert conflict.value.status.code == 409


async def test_it_scales_and_deletes(cluster: Cluster) -> None:
    admin = cluster.admin
    selector = {"matchLabels": {"app": "a"}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    body = {"metadata": {"name": "d", "namespace": "default"}, "spec": {"selector": selector, "template": template}}
    await admin.create(Deployment.from_dict(body))
    scale = await admin.get(Deployment.Scale, "d", namespace="default")
    scale.spec.replicas = 4
    await admin.replace(scale, "d", namespace="default")
    assert (await admin.get(Deployment, "d", namespace="default")).spec.replicas == 4
    await admin.delete(Deployment, "d", namespace="default")
    with pytest.raises(ApiError, match=r'deployments\.apps "d" not found'):
        await admin.get(Deployment, "d", namespace="default")


async def test_it_is_refused_what_it_has_no_right_to(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        await cluster.guest.get(Namespace, "default")
    assert refused.value.status.code == 403
    assert refused.value.status.message == (
        'namespaces "default" is forbidden: User "guest" cannot get resource "namespaces" in API group "" in the '
        'namespace "default"'
    )
    pod = Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(containers=[Container(name="c", image="i:1")]))
    with pytest.raises(ApiError, match='User "guest" cannot create resource "pods" in API group "" in the namespace'):
        await cluster.guest.create(pod, namespace="default")
