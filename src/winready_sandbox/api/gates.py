"""Features of pods that a version of Kubernetes has switched on by default, and fields that it knows at all.

The embedded API server runs with the default gates of its version: fields of a feature that is off are dropped, fields
of later versions are unknown.
"""

from __future__ import annotations

OFF = 1000
"""A version that never comes: the gate is off everywhere."""

_ON_SINCE = {
    "AppArmorFields": 30,
    "AppArmorWithoutAnnotations": 34,
    "ClusterTrustBundleProjection": OFF,
    "ContainerRestartRules": 35,
    "ContainerStopSignals": OFF,
    "DynamicResourceAllocation": 34,
    "EnvFiles": 35,
    "HostnameOverride": 35,
    "ImageVolume": 35,
    "InPlacePodVerticalScaling": 33,
    "InPlacePodLevelResourcesVerticalScaling": 36,
    "InPlacePodVerticalScalingInitContainers": 36,
    "MatchLabelKeysInPodAffinity": 31,
    "MatchLabelKeysInPodTopologySpread": 27,
    "NodeInclusionPolicyInPodTopologySpread": 26,
    "PodCertificateRequest": OFF,
    "PodLevelResources": 34,
    "PodLifecycleSleepAction": 30,
    "PodLifecycleSleepActionAllowZero": 33,
    "PreferSameTrafficDistribution": 34,
    "ProcMountType": 33,
    "RecursiveReadOnlyMounts": 31,
    "RelaxedDNSSearchValidation": 33,
    "RestartAllContainersOnContainerExits": 36,
    "SELinuxChangePolicy": 33,
    "SELinuxMount": OFF,
    "SidecarContainers": 29,
    "SupplementalGroupsPolicy": 33,
    "UserNamespacesSupport": 33,
    "WorkloadScheduling": OFF,
}

FIELDS_SINCE = {
    "Container.resizePolicy": 27,
    "Container.restartPolicy": 28,
    "Container.restartPolicyRules": 34,
    "EnvVarSource.fileKeyRef": 34,
    "EphemeralContainerCommon.resizePolicy": 27,
    "EphemeralContainerCommon.restartPolicy": 28,
    "EphemeralContainerCommon.restartPolicyRules": 34,
    "HPAScalingRules.tolerance": 33,
    "JobSpec.backoffLimitPerIndex": 28,
    "JobSpec.managedBy": 30,
    "JobSpec.maxFailedIndexes": 28,
    "JobSpec.podFailurePolicy": 25,
    "JobSpec.podReplacementPolicy": 28,
    "JobSpec.successPolicy": 30,
    "Lifecycle.stopSignal": 33,
    "LifecycleHandler.sleep": 29,
    "PodAffinityTerm.matchLabelKeys": 29,
    "PodAffinityTerm.mismatchLabelKeys": 29,
    "PodSecurityContext.appArmorProfile": 30,
    "PodSecurityContext.seLinuxChangePolicy": 32,
    "PodSecurityContext.supplementalGroupsPolicy": 31,
    "PodSpec.hostUsers": 25,
    "PodSpec.hostnameOverride": 34,
    "PodSpec.resourceClaims": 26,
    "PodSpec.resources": 32,
    "PodSpec.schedulingGates": 26,
    "PodSpec.schedulingGroup": 36,
    "ResourceRequirements.claims": 26,
    "SecurityContext.appArmorProfile": 30,
    "ServiceSpec.trafficDistribution": 30,
    "StatefulSetSpec.ordinals": 26,
    "StatefulSetSpec.persistentVolumeClaimRetentionPolicy": 23,
    "TopologySpreadConstraint.matchLabelKeys": 25,
    "TopologySpreadConstraint.minDomains": 24,
    "TopologySpreadConstraint.nodeAffinityPolicy": 25,
    "TopologySpreadConstraint.nodeTaintsPolicy": 25,
    "VolumeMount.recursiveReadOnly": 30,
    "VolumeProjection.clusterTrustBundle": 29,
    "VolumeProjection.podCertificate": 34,
    "VolumeSource.image": 31,
}
"""Fields that people write and that came after the oldest version, by struct and name."""


def on(gate: str, minor: int) -> bool:
    """Whether 1.``minor`` has a feature without being told."""
    return minor >= _ON_SINCE[gate]
