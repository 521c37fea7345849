"""The embedded control plane: registry, access control, HTTPS server and controllers of one sandbox."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from winready_sandbox.api import admission, policing
from winready_sandbox.api.assembly import install_access, new_registry
from winready_sandbox.api.authn import Authenticator
from winready_sandbox.api.bootstrap import fill
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.identity import AUTHENTICATED, MASTERS, NODE_PREFIX, NODES, User
from winready_sandbox.api.kubelet_gateway import KubeletGateway
from winready_sandbox.api.policing.gmsa import CredentialSpecs
from winready_sandbox.api.rbac import Authorizer
from winready_sandbox.api.server import ApiServer
from winready_sandbox.api.tokens import TokenIssuer
from winready_sandbox.api.trouble import Trouble
from winready_sandbox.clock import Clock
from winready_sandbox.control_plane.protocol import HOST, MACHINE_IP, SANDBOX, SERVICE_IP, port_trouble, server_names
from winready_sandbox.controllers.controller import Context
from winready_sandbox.controllers.manager import Manager
from winready_sandbox.egress import Egress
from winready_sandbox.pki import Authority, new_key, server_context
from winready_sandbox.plan import Plan
from winready_sandbox.versions import release
from winready_sandbox.wire import Accept

CONTROLLERS = User("system:kube-controller-manager", (AUTHENTICATED,))
ADDRESS = (MACHINE_IP, 6443)


class EmbeddedControlPlane:
    """A Kubernetes API with its controllers, in this process."""

    def __init__(self, plan: Plan, clock: Clock, egress: Egress, authority: Authority) -> None:
        minor = plan.minor
        self.version = release(minor)
        self.address = ADDRESS
        self.authority = authority
        self.registry = new_registry(minor)
        admission.install(self.registry, plan.service_networks)
        self.reviewers = policing.install(self.registry, plan.pod_security)
        self.client = LocalClient(self.registry)
        issuer = self.tokens = TokenIssuer(new_key(), self.client)
        authorizer = Authorizer(self.client)
        self._authenticator = Authenticator(issuer)
        self.credential_specs = CredentialSpecs(self.registry, authorizer)
        """What the gMSA webhook answers, in clusters whose configurations ask it."""
        self.reviewers.services["gmsa-webhook", "gmsa-webhook", "/mutate"] = self.credential_specs.mutate
        self.reviewers.services["gmsa-webhook", "gmsa-webhook", "/validate"] = self.credential_specs.validate
        install_access(self.registry, self._authenticator, authorizer, issuer)
        identity = authority.client("kube-apiserver-kubelet-client", [MASTERS])
        self._gateway = KubeletGateway(self.client, egress, identity, authorizer=authorizer, minor=minor)
        self.server = ApiServer(
            self.registry, authenticator=self._authenticator, authorizer=authorizer, nodes=self._gateway
        )
        self.trouble = Trouble(frozenset({SANDBOX.name}))
        self.server.disturb = self.trouble
        self.registry.admission.insert(0, self.trouble.meddle)
        self.server.pages["/openid/v1/jwks"] = lambda request: issuer.jwks()
        self.server.pages["/.well-known/openid-configuration"] = lambda request: issuer.openid_configuration(self.url)
        controllers = LocalClient(self.registry, CONTROLLERS)
        root_ca = authority.certificate.decode()
        self.manager = Manager(Context(controllers, self.registry.resources, clock, root_ca, plan.pod_networks))
        self._domain = plan.cluster_domain
        self.port = 0
        self.work: asyncio.Task[None] | None = None
        """The controllers; ends only when one of them fails."""

    @property
    def url(self) -> str:
        """Where the API is served."""
        return f"https://{HOST}:{self.port}"

    @property
    def inside(self) -> Accept:
        """The way to the API past sockets and TLS."""
        return self.server.accept

    def node_token(self, name: str) -> str:
        """A credential for the kubelet of a node."""
        return self.token(User(f"{NODE_PREFIX}{name}", (NODES,)))

    def token(self, user: User) -> str:
        """A new bearer token for a user."""
        token = secrets.token_urlsafe(24)
        self._authenticator.add_token(token, user)
        return token

    def defects(self, part: str, node: str) -> Any:
        """What can be broken here."""
        context = self.manager.context
        return {
            "api": self.trouble.defects,
            "tokens": self.tokens.defects,
            "controllers": context.defects,
            "scheduler": context.placement[node],
            "gmsa": self.credential_specs.defects,
        }[part]

    async def start(self, port: int) -> None:
        """Serve the API and start the controllers."""
        serving = self.authority.server("kube-apiserver", server_names(self._domain))
        try:
            self.port = await self.server.start(port, server_context(serving, self.authority.certificate), HOST)
        except OSError as error:
            raise port_trouble(error, port) from None
        ca = self.authority.certificate
        fill(self.client, service_ip=SERVICE_IP, server_ip=self.address[0], server_port=self.address[1], ca=ca)
        self.work = asyncio.create_task(self.manager.run(), name="controllers")

    async def stop(self) -> None:
        """Stop the controllers, then the API."""
        if self.work is not None:
            self.work.cancel()
            await asyncio.gather(self.work, return_exceptions=True)
        await self._gateway.close()
        await self.server.stop()
