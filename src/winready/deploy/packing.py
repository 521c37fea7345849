"""Files that a run in the cluster needs, made small enough for a ConfigMap."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from winready.engine.rules.conformance import ConformanceError, read_conformance, read_documents

MOST_BYTES = 700 * 1024
"""A ConfigMap holds 1 MiB, and its content is written in base64."""


def pack_conformance(path: Path) -> bytes:
    """The JUnit documents of a conformance result and nothing else, as an archive that ``run`` reads.

    The same file gives the same bytes. Raises `ConformanceError`.
    """
    read_conformance(path)
    archive = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=9, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as files,
    ):
        for number, document in enumerate(read_documents(path), 1):
            entry = tarfile.TarInfo(f"plugins/e2e/results/global/junit_{number:02}.xml")
            entry.size = len(document)
            files.addfile(entry, io.BytesIO(document))
    content = archive.getvalue()
    if len(content) > MOST_BYTES:
        raise ConformanceError(
            f"is {len(content) // 1024} KiB when packed, and a ConfigMap has room for {MOST_BYTES // 1024}; "
            "leave what the tests printed out of it"
        )
    return content
