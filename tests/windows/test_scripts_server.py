"""What ``node.ps1`` asks the API server before it changes anything: whether it knows the token, and its release."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from windows.cluster import BELOW, CA_HASH, ENDPOINT, NEXT, OTHERS, RELEASE, TOKEN, Api, api_server
from windows.ground import Ground, Result
from windows.worker import JOIN, Worker

PAST, FUTURE = "2020-01-31T12:30:00Z", "2999-01-31T12:30:00Z"
UNKNOWN = "the token is unknown to the cluster or has expired; 'winready node join-command' makes a new one"
SOUND = {
    "a line that is too old": (
        f"{JOIN} -TokenExpires {PAST}",
        f"the token has expired at {PAST} (this machine's clock says ",
    ),
    "a time that is none": (f"{JOIN} -TokenExpires tomorrow", "'tomorrow' is no time: -TokenExpires reads like "),
    "a token that nobody made": (f"join -Token zzzzzz.{TOKEN[7:]} -CaHash {CA_HASH}", UNKNOWN),
    "such a token, only looked at": (f"join -Token zzzzzz.{TOKEN[7:]} -CaHash {CA_HASH} -WhatIf", UNKNOWN),
    "half of a token": (
        f"join -Token {TOKEN[:7]}{TOKEN[:6:-1]} -CaHash {CA_HASH}",
        "the second half of the token is not what",
    ),
    "another cluster's fingerprint": (
        f"join -Token {TOKEN} -CaHash {OTHERS.fingerprint}",
        "has another certificate authority than -CaHash says",
    ),
}
"""Refused by a machine whose API server is all right."""
SERVERS = {
    "a token that was deleted": (Api(tokens=[]), UNKNOWN),
    "another authority of the same name": (
        Api(authority=OTHERS),
        "has no valid certificate of the cluster for 127.0.0.1",
    ),
    "a certificate for somebody else": (
        Api(address="127.0.0.2"),
        "has no valid certificate of the cluster for 127.0.0.1",
    ),
    "a cluster that is not ours": (
        Api(authority=OTHERS, named=OTHERS),
        "has another certificate authority than -CaHash says",
    ),
    "no anonymous requests": (
        Api(refusal=403),
        "answers 403 when it is asked for ConfigMap cluster-info in kube-public",
    ),
}
LIVE = {
    "a control plane that is older": (
        Api(release=RELEASE),
        f"Kubernetes {NEXT} is newer than the API server ({RELEASE})",
    ),
    "one that is much newer": (
        Api(release="1.41.0"),
        "is more than three minor versions older than the API server (1.41.0)",
    ),
    "another authority": (
        Api(release=NEXT, authority=OTHERS),
        "has no valid certificate of the cluster for 127.0.0.1; whether",
    ),
    "no anonymous requests": (Api(refusal=401), "answers 401 when it is asked for its version"),
}


def sentence(result: Result) -> str:
    (line,) = result.out.splitlines()
    assert line.startswith("error: "), result.out
    assert TOKEN[7:] not in line
    return line.removeprefix("error: ")


@contextlib.contextmanager
def deaf_server(ground: Ground) -> Iterator[None]:
    """Somebody who takes connections and does not speak TLS."""
    host, _, port = ENDPOINT.partition(":")
    with ground.network():
        listener = socket.create_server((host, int(port)), backlog=100)

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                connection.sendall(b"no\n")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.fixture(scope="module")
def bare(bundles: dict[str, Path]) -> Iterator[Worker]:
    """A machine on which nothing ever succeeds, without an API server."""
    with Ground() as ground:
        machine = Worker(ground)
        machine.prepare(bundles[RELEASE])
        yield machine


@pytest.fixture(scope="module")
def joined(bundles: dict[str, Path]) -> Iterator[Worker]:
    """A worker that has a newer bundle, without an API server."""
    with Ground() as ground:
        machine = Worker(ground)
        machine.prepare(bundles[RELEASE])
        with api_server(ground):
            first, again = machine.node(f"{JOIN} -TokenExpires {FUTURE}", f"{JOIN} -TokenExpires {PAST}")
        assert first.code == 0, first.out
        # What has joined needs no token.
        assert again.code == 0, again.out
        assert "nothing had to be changed" in again.out
        machine.change_bundle(bundles[NEXT])
        yield machine


@pytest.fixture(scope="module")
def answers(bare: Worker) -> dict[str, Result]:
    before = bare.picture()
    with api_server(bare.ground):
        found = dict(zip(SOUND, bare.node(*(command for command, _ in SOUND.values())), strict=True))
    assert bare.picture() == before
    assert bare.calls() == bare.programs() == []
    return found


@pytest.mark.parametrize("what", SOUND)
def test_a_token_that_does_not_do_is_one_sentence_and_changes_nothing(answers: dict[str, Result], what: str) -> None:
    assert answers[what].code == 2
    assert SOUND[what][1] in sentence(answers[what])


@pytest.mark.parametrize("what", SERVERS)
def test_a_server_that_does_not_vouch_for_the_token_is_refused(bare: Worker, what: str) -> None:
    api, words = SERVERS[what]
    before = bare.picture()
    with api_server(bare.ground, replace(api, asked=[])) as asked:
        (result,) = bare.node(JOIN)
    assert result.code == 2
    assert words in sentence(result)
    assert asked.asked == ["/api/v1/namespaces/kube-public/configmaps/cluster-info"]
    assert bare.picture() == before
    assert bare.calls() == bare.programs() == []


def test_a_server_may_send_the_authority_between_it_and_the_clusters(bare: Worker) -> None:
    before = bare.picture()
    with api_server(bare.ground, Api(authority=BELOW)) as api:
        (result,) = bare.node(f"{JOIN} -TokenExpires {FUTURE} -WhatIf")
    assert result.code == 0, result.out
    assert result.out.endswith("nothing was changed (-WhatIf)\n")
    assert len(api.asked) == 1
    assert bare.picture() == before


def test_somebody_who_speaks_no_tls_is_told_apart(bare: Worker) -> None:
    before = bare.picture()
    with deaf_server(bare.ground):
        (result,) = bare.node(JOIN)
    assert result.code == 2
    assert f"the API server at {ENDPOINT} cannot be asked whether it knows the token: " in sentence(result)
    assert bare.picture() == before


@pytest.mark.parametrize("what", LIVE)
def test_an_upgrade_goes_by_the_server_as_it_is_now(joined: Worker, what: str) -> None:
    api, words = LIVE[what]
    before = joined.picture()
    joined.calls(), joined.programs()
    with api_server(joined.ground, replace(api, asked=[])) as asked:
        result, tried = joined.node(joined.upgrade, f"{joined.upgrade} -WhatIf")
    for one in (result, tried):
        assert one.code == 2
        assert words in sentence(one)
    assert asked.asked == ["/version", "/version"]
    assert joined.picture() == before
    assert joined.calls() == joined.programs() == []


def test_an_upgrade_wants_a_server_that_answers_and_the_digest_of_its_bundle(joined: Worker) -> None:
    before = joined.picture()
    away, without, other = joined.node(joined.upgrade, "upgrade", "upgrade -BundleDigest " + "0" * 64)
    assert away.code == without.code == other.code == 2
    assert f"the API server at {ENDPOINT} cannot be asked for its version: " in sentence(away)
    assert sentence(away).endswith("; whether the versions fit cannot be known, so nothing is changed")
    assert sentence(without).startswith("-BundleDigest is missing: use the line that 'winready node upgrade-command'")
    assert "another digest than -BundleDigest says" in other.out
    assert joined.picture() == before
