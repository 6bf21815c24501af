"""The volume of a file server's files: a folder of its node, or what comes and goes with it."""

import posixpath
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.policy import Policy
from tierbench.kinds.file_transfer.spec import Storage
from tierbench.workloads.workload import Manifest

DATA: Final = "/data"
FOLDER: Final = "_tierbench"  # as `prepare` makes it in the storage: nothing beside it is the server's


@dataclass(frozen=True)
class FileVolume:
    """A volume, and the folder of it that files are in. To a subPath the kubelet follows no link out of its volume."""

    source: dict[str, Any]
    folder: str = ""

    @property
    def volume(self) -> dict[str, Any]:
        """For the pod."""
        return {"name": "data", **self.source}

    @property
    def served(self) -> dict[str, Any]:
        """The files alone, to be read."""
        return {**self.mount(FOLDER), "readOnly": True}

    def mount(self, folder: str = "") -> dict[str, Any]:
        """The storage, or a folder in it."""
        return {"name": "data", "mountPath": DATA, "subPath": posixpath.join(self.folder, folder).rstrip("/")}


def file_volume(storage: Storage, policy: Policy, claim_name: str, needed: int) -> FileVolume:
    """As the storage asks for it, for so many bytes. Of a node's disk a folder that the administrator has named is the
    volume.

    Raises:
        ValueError: none of these holds the folder that is asked for, as a benchmark may that is older than the policy.
    """
    if storage.host_path is not None:
        prefix, folder = policy.host_folder(storage.host_path.path)
        return FileVolume({"hostPath": {"path": prefix, "type": "DirectoryOrCreate"}}, folder)
    if storage.persistent_volume_claim is not None:
        return FileVolume({"persistentVolumeClaim": {"claimName": claim_name}})
    return FileVolume({"emptyDir": {"sizeLimit": str(_room(needed))}})


def claims(storage: Storage, metadata: Manifest, needed: int) -> tuple[Manifest, ...]:
    """The claim, where the storage asks for one, for so many bytes."""
    if storage.persistent_volume_claim is None:
        return ()
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage.persistent_volume_claim.storage_class_name,
        "resources": {"requests": {"storage": str(_room(needed))}},
    }
    return ({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec},)


def _room(needed: int) -> int:
    """Bytes of a volume for so many, with what a file system needs for itself, and what stays free."""
    return needed + needed // 4 + 512 * 2**20
