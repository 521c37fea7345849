"""A real browser: Debian's Chromium, headless, that may talk to nobody but the page's own origin."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


PATIENCE_MS = 30_000
"""For a busy machine; nothing here is judged by how long it takes."""
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "these tests need Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page; at the end it must have logged no error and asked nobody else."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: problems.append(request.url) if _foreign(request.url) else None)
    yield opened
    opened.close()
    assert problems == []


def _foreign(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "file:///"))


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[str]:
    """The address of a dashboard over ``tmp_path``."""
    command = [sys.executable, "-m", "winready", "dashboard", "--port", "0", "--report-dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().rsplit(" ", 1)[1].strip()
    process.terminate()
    assert process.wait(30) == 0
