"""Volumes of pods on a simulated node."""

from winready_sandbox.nodes.volumes.content import VolumeError
from winready_sandbox.nodes.volumes.pod import PodVolumes

__all__ = ["PodVolumes", "VolumeError"]
