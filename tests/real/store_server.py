"""The real versitygw, an S3 server over a folder, on loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from real_programs import ensure

KUBERNETES = "1.36.3"
BUCKET = "shop-runs"
KEY, SECRET = "owner", "owner-s3cret-0123456789"  # of a server that only this test can reach
STRANGER, STRANGERS_SECRET = "stranger", "stranger-s3cret-0123456789"


class Server:
    """An S3 server that can be stopped, killed and started again, with one bucket."""

    def __init__(self, folder: Path, *, megabytes: int | None = None) -> None:
        self.program = ensure(KUBERNETES, ["versitygw"]) / "versitygw"
        self.data, self.users, self.log = folder / "data", folder / "users", folder / "log"
        self.megabytes = megabytes
        for made in (self.data, self.users):
            made.mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What its owner has."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    @property
    def strangers_environment(self) -> dict[str, str]:
        """What somebody has who may do nothing."""
        words = ["create-user", "--access", STRANGER, "--secret", STRANGERS_SECRET, "--role", "user"]
        owner = ["--access", KEY, "--secret", SECRET, "--endpoint-url", self.endpoint]
        subprocess.run([self.program, "admin", *owner, *words], check=True, capture_output=True)
        return {**self.environment, "AWS_ACCESS_KEY_ID": STRANGER, "AWS_SECRET_ACCESS_KEY": STRANGERS_SECRET}

    def start(self) -> None:
        """Serve what the folder has."""
        command = [
            str(self.program),
            "--port",
            f"127.0.0.1:{self.port}",
            "--access",
            KEY,
            "--secret",
            SECRET,
            "--quiet",
        ]
        command += ["--iam-dir", str(self.users), "posix", str(self.data)]
        if self.megabytes:
            # A disk of its own, which only this process sees.
            disk = f"mount -t tmpfs -o size={self.megabytes}m tmpfs {self.data} && mkdir {self.data}/{BUCKET}"
            command = ["unshare", "-Urm", "sh", "-c", f'{disk} && exec "$@"', "sh", *command]
        else:
            (self.data / BUCKET).mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(600):
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise AssertionError(f"the server does not listen: {self.log.read_text()}")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, gently or not."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)
            self.process.wait(20)
            self.process = None

    def objects(self, prefix: str) -> dict[str, bytes]:
        """What lies on its disk, by key."""
        base = self.data / BUCKET / prefix
        found = (path for path in base.rglob("*") if path.is_file())
        return {path.relative_to(base).as_posix(): path.read_bytes() for path in found}
