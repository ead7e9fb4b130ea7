"""Connections over real sockets: slow, idle, greedy and broken clients are refused in time, and others are served."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmsh.search.searcher import Searcher
from rmsh.serve import limits
from rmsh.serve.limits import SECURITY_HEADERS, Connection

Listen = Callable[..., int]
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
UPLOAD = b"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
SOON = 5.0  # seconds; a busy machine is late, a missing deadline is never


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "header_seconds", 0.4)
    monkeypatch.setattr(Connection, "request_seconds", 0.8)


def _connect(port: int, content: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=SOON)
    client.sendall(content)
    return client


def _answers(client: socket.socket) -> bytes:
    """Everything until the server ends the connection."""
    content = b""
    with client:
        while part := client.recv(1 << 16):
            content += part
    return content


def _refusal(answer: bytes) -> int:
    """The status of a refusal, which must be complete."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert [name for name, value in SECURITY_HEADERS.items() if headers.get(name.lower()) != value] == []
    assert (headers["content-type"], headers["connection"]) == ("application/json", "close")
    assert list(json.loads(body)) == ["error"]
    return int(status.split()[1])


def _drip(client: socket.socket, content: bytes) -> None:
    """Send a byte at a time, until the server has had enough."""
    try:
        for byte in content:
            client.sendall(bytes([byte]))
            time.sleep(0.05)
    except OSError:
        pass


@pytest.mark.parametrize("sent", [b"", b"GET", HEALTH[:-1]], ids=["nothing", "a word", "all but the end"])
def test_a_request_that_does_not_come_is_refused(sent: bytes, listen: Listen) -> None:
    assert _refusal(_answers(_connect(listen(), sent))) == 408


@pytest.mark.parametrize("length", [b"Content-Length: 900\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_body_that_does_not_come_is_refused(length: bytes, listen: Listen) -> None:
    assert _refusal(_answers(_connect(listen(), UPLOAD + length))) == 408


@pytest.mark.parametrize(
    "start",
    [b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", UPLOAD + b"Content-Length: 900\r\n\r\n--x\r\nA: "],
    ids=["head", "body"],
)
def test_a_byte_now_and_then_does_not_extend_the_time(start: bytes, listen: Listen) -> None:
    client, begun = _connect(listen(), start), time.monotonic()
    dripping = threading.Thread(target=_drip, args=(client, b"a" * 100))
    dripping.start()
    assert _refusal(_answers(client)) == 408
    assert time.monotonic() - begun < 4
    dripping.join(60)


def test_a_small_answer_is_sent_without_waiting_for_an_acknowledgement(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, made = list[int](), Connection.connection_made

    def watched(self: Connection, transport: asyncio.Transport) -> None:
        made(self, transport)
        options.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(Connection, "connection_made", watched)
    assert b"200 OK" in _answers(_connect(listen(), HEALTH))
    assert options == [1]


def test_a_connection_that_is_kept_alive_ends_when_nothing_follows(listen: Listen) -> None:
    assert _answers(_connect(listen(), HEALTH)).count(b'{"status":"ok"}') == 1


@pytest.mark.parametrize("more", [b"GET /", UPLOAD + b"Content-Length: 900\r\n\r\n"], ids=["head", "body"])
@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["at once", "later"])
def test_half_a_request_after_a_whole_one_is_refused(more: bytes, pause: float, *, listen: Listen) -> None:
    client = _connect(listen(), HEALTH if pause else HEALTH + more)
    time.sleep(pause)
    if pause:
        client.sendall(more)
    first, _, second = _answers(client).partition(b'{"status":"ok"}')
    assert (first[:12], _refusal(second)) == (b"HTTP/1.1 200", 408)


def test_a_client_that_takes_no_answers_is_dropped(listen: Listen) -> None:
    client = _connect(listen())
    requests = b"GET /static/page.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1_000_000
    with client, pytest.raises(ConnectionError):  # and not TimeoutError
        client.sendall(requests)


@pytest.mark.parametrize("length", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])
def test_a_slow_but_timely_client_is_served(length: bytes, listen: Listen) -> None:
    client = _connect(listen(), HEALTH[:20])
    time.sleep(0.1)
    client.sendall(HEALTH[20:-2])
    time.sleep(0.1)
    client.sendall(length)
    assert _answers(client).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"\0" * 100_000]
)
def test_junk_is_refused(junk: bytes, listen: Listen) -> None:
    assert _refusal(_answers(_connect(listen(), junk))) == 400


def test_two_lengths_of_a_body_are_refused_and_no_second_request_is_smuggled(listen: Listen) -> None:
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    answers = _answers(_connect(listen(), UPLOAD + both + HEALTH))
    assert (_refusal(answers), b"status" in answers) == (400, False)


def test_damaged_forms_do_not_fill_the_log(listen: Listen, caplog: pytest.LogCaptureFixture) -> None:
    body = b'--x\r\nContent[Disposition: form-data; name="picture"\r\n\r\na\r\n--x--\r\n'
    answer = _answers(_connect(listen(), UPLOAD + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    assert (answer[:12], caplog.records) == (b"HTTP/1.1 400", [])


@pytest.mark.parametrize("access", [{}, {"token": "a token of enough letters"}], ids=["open", "token"])
def test_a_cookie_that_is_slow_to_parse_delays_nobody(access: dict[str, str], listen: Listen) -> None:
    port = listen(**access)
    cookie = b'\r\nCookie: rmsh-session="' + b"\\" * 60_000 + b'"\r\n\r\n'
    request = HEALTH.replace(b"/healthz", b"/api/about").replace(b"\r\n\r\n", cookie)
    with _connect(port, request) as slow, _connect(port, HEALTH) as other:
        assert other.recv(100).startswith(b"HTTP/1.1 200")
        assert slow.recv(100)[:12] == (b"HTTP/1.1 401" if access else b"HTTP/1.1 200")


@pytest.mark.parametrize("part", [b"5-1", b"9999999999-", b"0-9"])
def test_parts_of_files_are_not_sent(part: bytes, listen: Listen) -> None:
    asked = b"\r\nConnection: close\r\nRange: bytes=" + part + b"\r\n\r\n"
    answer = _answers(_connect(listen(), HEALTH.replace(b"/healthz", b"/static/page.js").replace(b"\r\n\r\n", asked)))
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_client_has_a_limited_number_of_connections(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "most_per_client", 3)
    port = listen()
    open_ones = [_connect(port) for _ in range(3)]
    assert _refusal(_answers(_connect(port, HEALTH))) == 429
    with socket.create_connection(("127.0.0.1", port), SOON, source_address=("127.0.0.2", 0)) as other:
        other.sendall(HEALTH)
        assert other.recv(100).startswith(b"HTTP/1.1 200")
    for one in open_ones:
        one.close()
    time.sleep(0.2)
    assert _answers(_connect(port, HEALTH)).startswith(b"HTTP/1.1 200")


def test_a_trusted_proxy_has_any_number_of_connections(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "most_per_client", 3)
    port = listen(proxies=["127.0.0.1"])
    clients = [_connect(port, HEALTH) for _ in range(9)]
    assert {_answers(client)[:12] for client in clients} == {b"HTTP/1.1 200"}


def test_idle_connections_keep_nobody_out(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(Connection, "header_seconds", 60.0)
    port = listen()
    idle = [_connect(port, b"GET /") for _ in range(4)]
    time.sleep(0.2)
    client = _connect(port, HEALTH)
    assert client.recv(1000).startswith(b"HTTP/1.1 200")
    assert idle[0].recv(1) == b""  # the first one had to go
    for one in (*idle, client):
        one.close()


def test_a_full_server_says_so(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(Connection, "request_seconds", 60.0)
    port = listen()
    sending = [_connect(port, UPLOAD + b"Content-Length: 900\r\n\r\n") for _ in range(4)]
    time.sleep(0.2)
    answer = _answers(_connect(port, HEALTH))
    assert (_refusal(answer), b"retry-after: 1" in answer.lower()) == (503, True)
    for one in sending:
        one.close()


def test_a_client_that_fills_the_server_with_slow_bodies_keeps_nobody_out(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(Connection, "request_seconds", 60.0)
    port = listen()
    sending = [_connect(port, UPLOAD + b"Content-Length: 900\r\n\r\n") for _ in range(4)]
    time.sleep(0.2)
    with socket.create_connection(("127.0.0.1", port), SOON, source_address=("127.0.0.2", 0)) as other:
        other.sendall(HEALTH)
        assert other.recv(100).startswith(b"HTTP/1.1 200")
    assert _refusal(_answers(sending[0])) == 503
    for one in sending[1:]:
        one.close()


def test_health_and_metrics_do_not_wait_for_searches(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = threading.Event()
    text = Searcher.text
    monkeypatch.setattr(Searcher, "text", lambda searcher, words: finish.wait(20) and text(searcher, words))
    monkeypatch.setattr(Connection, "most_per_client", 1000)
    port = listen()
    search = b"GET /api/search?text=red HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    searches = [_connect(port, search) for _ in range(100)]
    try:
        for path in (b"/healthz", b"/metrics", b"/", b"/api/about"):
            client = _connect(
                port, HEALTH.replace(b"/healthz", path).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            )
            assert _answers(client).startswith(b"HTTP/1.1 200"), path
    finally:
        finish.set()
    with ThreadPoolExecutor(100) as pool:
        statuses = [answer[:12] for answer in pool.map(_answers, searches)]
    assert {status: statuses.count(status) for status in statuses}.keys() == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
