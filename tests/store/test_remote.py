"""What a store says, told in our words: odd keys, refusals, slowness, without a word of what may be secret."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import pytest

from winready.store.addresses import parse
from winready.store.errors import Away, Full, NoSuchPlace, Refused, StoreError
from winready.store.objects import Objects, open_place

SECRET = "hunter2hunter2"


class Stub(ThreadingHTTPServer):
    """Lists the keys that it is given as S3 does, or answers everything with one error."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.keys: list[str] = []
        self.error: tuple[int, str] | None = None
        self.silent = threading.Event()

    def document(self, query: dict[str, list[str]]) -> str:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        contents, folders = [], set()
        for key in (key for key in self.keys if key.startswith(prefix)):
            name, slash, _ = key[len(prefix) :].partition("/")
            if delimiter and slash:
                folders.add(f"{prefix}{name}/")
            else:
                contents.append(key)
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"e"</ETag><Size>5</Size></Contents>'
            for key in contents
        )
        listed += "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders)
        return f"<ListBucketResult><Name>runs</Name><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"


class Answering(BaseHTTPRequestHandler):
    """One request."""

    server: Stub

    def log_message(self, format: str, *values: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self.server.silent.wait(20)
        code, body = 200, self.server.document(parse_qs(urlsplit(self.path).query))
        if self.server.error:
            code, name = self.server.error
            body = f"<Error><Code>{name}</Code><StringToSign>{SECRET}</StringToSign></Error>"
        # Whoever was left waiting may have gone.
        with suppress(OSError):
            self.send_response(code)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

    def do_PUT(self) -> None:
        self.do_GET()


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    server = Stub()
    server.silent.set()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    yield server
    server.silent.set()
    server.shutdown()
    server.server_close()


def objects(patience: float = 5) -> Objects:
    return open_place(parse("s3://runs/fleet"), patience)


def test_a_key_that_no_tool_can_write_hides_nothing_but_its_own_folder(stub: Stub) -> None:
    stub.keys = ["fleet/a/run.json", "fleet/b//run.json", "fleet/b/run.json", "fleet/c/run.json", "fleet/notes"]
    found = [entry.key for entry in objects().list()]
    assert {"a/run.json", "c/run.json", "notes"} <= set(found)
    (odd,) = [key for key in found if key.startswith("b/")]
    assert "fleet/b//run.json" in odd


def test_a_key_that_leads_upwards_is_named_with_what_to_do(stub: Stub) -> None:
    stub.keys = ["fleet/a/run.json", "fleet/../b"]
    with pytest.raises(Refused, match=r"no tool can name: 'fleet/\.\./'") as caught:
        list(objects().list())
    assert caught.value.remedy == "remove it"


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        ((403, "AccessDenied"), Refused, "refuses (403, AccessDenied)"),
        ((403, "SignatureDoesNotMatch"), Refused, "does not know who asks"),
        ((403, "ExpiredToken"), Refused, "does not know who asks"),
        ((404, "NoSuchBucket"), NoSuchPlace, "there is no s3://runs"),
        ((507, "InsufficientStorage"), Full, "takes nothing more"),
        ((503, "SlowDown"), Away, "does not answer (503, SlowDown)"),
    ],
)
def test_refusals_are_told_by_their_code_and_nothing_else(
    stub: Stub, answer: tuple[int, str], kind: type[StoreError], says: str
) -> None:
    stub.error = answer
    with pytest.raises(kind) as caught:
        list(objects(1).list())
    assert says in caught.value.message
    assert SECRET not in caught.value.message + caught.value.remedy


def test_a_store_that_says_nothing_is_away_after_a_while(stub: Stub) -> None:
    stub.silent.clear()
    with pytest.raises(Away, match="it took too long"):
        list(objects(0.3).list())


def test_without_credentials_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    # Where a machine in a cloud would be asked who it is.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(Refused, match="there are no credentials for s3://runs") as caught:
        list(objects(0.5).list())
    assert "AWS_ACCESS_KEY_ID" in caught.value.remedy
