"""Service-account tokens of pods: asked for from the API server, renewed before they expire.

As the kubelet does it: at 80 % of the token's life, or after a day, less up to 10 s of jitter; the file changes at the
pod's next sync. Life is counted in cluster seconds, so that a fast sandbox shows a rotation as soon as its clock says.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from winready_sandbox.apiclient import ApiClient, ApiFailure, ApiUnreachable
from winready_sandbox.clock import Clock
from winready_sandbox.nodes.volumes.content import VolumeError

Object = dict[str, Any]
_DAY = 24 * 3600.0


@dataclass
class _Held:
    token: str
    renew_at: float


class TokenSource:
    """The tokens of one pod."""

    def __init__(self, client: ApiClient, clock: Clock, pod: Object) -> None:
        self._client = client
        self._clock = clock
        self._pod = pod
        self._held: dict[tuple[str, int], _Held] = {}

    async def token(self, audience: str, lifetime: int, *, renew: bool = True) -> str:
        """The token for an audience; a fresh one when there is none or it is time."""
        held = self._held.get((audience, lifetime))
        if held is not None and (not renew or self._clock.now() < held.renew_at):
            return held.token
        try:
            held = await self._request(audience, lifetime)
        except (ApiFailure, ApiUnreachable) as error:
            if held is not None:
                return held.token
            raise VolumeError(f"failed to fetch token: {error}") from None
        self._held[audience, lifetime] = held
        return held.token

    @property
    def due(self) -> bool:
        """Is it time to renew one of them?"""
        return any(self._clock.now() >= held.renew_at for held in self._held.values())

    async def _request(self, audience: str, lifetime: int) -> _Held:
        metadata, spec = self._pod["metadata"], self._pod["spec"]
        account = spec.get("serviceAccountName") or "default"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        wanted: Object = {"expirationSeconds": lifetime, "boundObjectRef": bound}
        if audience:
            wanted["audiences"] = [audience]
        request = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": account, "namespace": metadata["namespace"]},
            "spec": wanted,
        }
        answer = await self._client.create("serviceaccounts", request, metadata["namespace"], subresource="token")
        life = float(answer.get("spec", {}).get("expirationSeconds") or lifetime)
        age = min(life * 0.8, _DAY) - random.uniform(0, 10)
        return _Held(answer["status"]["token"], self._clock.now() + age)
