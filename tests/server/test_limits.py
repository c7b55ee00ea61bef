"""Clients that send too much, too slowly or nothing: refused, while others are served."""

import resource
import socket
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

from support.effort import TIMES
from support.server_play import serving
from support.server_process import ServerProcess
from weft.server import context
from weft.server.settings import Limits, ServerSettings

SHORT = Limits(header_seconds=0.6, body_seconds=0.6, half_open=50)


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    """As many open sockets as the system allows; returns how many."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    yield most
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))


@pytest.fixture(scope="module")
def strict(workspace):
    """A server whose deadlines are short."""
    with serving(workspace, settings=ServerSettings(port=0, limits=SHORT)) as server:
        yield server


def connect(server):
    where = urlsplit(server.url)
    return socket.create_connection((where.hostname, where.port), timeout=10)


def answer(connection):
    """Return everything until the server closes the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            parts.append(piece)
    return b"".join(parts)


def status(content):
    return int(content.split(b" ", 2)[1]) if content else 0


def is_alive(server):
    return server.call("GET", "/healthz").status == 200


HEAD = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (HEAD + b"x: " + b"a" * 40_000 + b"\r\n\r\n", 431),
        (HEAD + b"".join(b"x%d: %s\r\n" % (n, b"a" * 100) for n in range(400)) + b"\r\n", 431),
        (HEAD + b"x: " + b"a" * 8_000_000, 431),
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", 414),
        (b"GET /" + b"a" * 8_000_000, 414),
        (b"POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9000000\r\n\r\n", 413),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400),
    ],
    ids=["header", "headers", "endless header", "address", "endless address", "body", "no HTTP"],
)
def test_too_much_is_refused(server, sent, wanted):
    with connect(server) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # The server may close it before.
            connection.sendall(sent)
        content = answer(connection)
    # Of what never ends, the server may have closed the connection before all was sent.
    assert status(content) in ({0, 414, 431} if len(sent) > 1_000_000 else {wanted})
    assert is_alive(server)


def test_body_without_a_length_is_counted(server):
    head = b"POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
    with connect(server) as connection:
        connection.sendall(head)
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(200):
                connection.sendall(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
        assert status(answer(connection)) in (413, 0)
    assert is_alive(server)


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (b"", 0),
        (b"GET /healthz HTTP/1.1\r\nhost: 127", 408),
        (b"POST /api/session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 20\r\n\r\n{", 408),
    ],
    ids=["nothing", "header", "body"],
)
def test_slow_clients_are_refused(strict, sent, wanted):
    with connect(strict) as connection:
        connection.sendall(sent)
        begun = time.monotonic()
        content = answer(connection)
        assert status(content) == wanted
        assert time.monotonic() - begun < 5


def test_header_that_comes_byte_by_byte_has_the_same_deadline(strict):
    with connect(strict) as connection:
        begun = time.monotonic()
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - begun < 10:
                connection.sendall(b"a")
                time.sleep(0.05)
        assert time.monotonic() - begun < 5


def test_silent_connections_leave_room_for_others(workspace, descriptors):
    limits = Limits(half_open=50, header_seconds=30)
    settings = ServerSettings(port=0, limits=limits)
    count = 400 if TIMES == 1 else min(10_000, descriptors - 500)
    with serving(workspace, settings=settings) as server, ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connect(server))
        for _ in range(20):
            assert is_alive(server)


def test_process_with_few_descriptors_serves_others(workspace):
    server = ServerProcess(workspace, descriptors=128)
    try:
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(connect(server))
            for _ in range(5):
                with connect(server) as other:
                    begun = time.monotonic()
                    other.sendall(HEAD + b"connection: close\r\n\r\n")
                    assert status(answer(other)) == 200
                    assert time.monotonic() - begun < Limits.header_seconds / 2
    finally:
        server.kill()


def test_frames_are_limited_and_others_are_served(server):
    """A header of a frame that claims to be huge, pieces without end, and no mask."""
    key = server.key("ada", "end_user")
    upgrade = (
        "GET /api/ws HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        f"authorization: Bearer {key}\r\n\r\n"
    ).encode()
    huge = b"\x81\xff" + (2**62).to_bytes(8) + bytes(4)
    piece = b"\x01\xff" + (60_000).to_bytes(8) + bytes(4) + b"a" * 60_000
    more = b"\x00" + piece[1:]
    for sent in (huge, piece + more * 10, b"\x81\x02{}", b"\x8f\x80" + bytes(4)):
        with connect(server) as connection:
            connection.sendall(upgrade)
            assert status(connection.recv(65_536)) == 101
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(sent)
            assert answer(connection)[:1] in (b"\x88", b""), "it is closed"
        assert is_alive(server)


def test_requests_of_one_connection_have_deadlines_of_their_own(strict):
    request = HEAD + b"\r\n"
    with connect(strict) as connection:
        for _ in range(3):
            connection.sendall(request)
            content = b""
            while b'{"ok":true}' not in content:
                content += connection.recv(65_536)
            time.sleep(0.3)


def test_server_is_not_ready_while_its_store_cannot_write(workspace, monkeypatch):
    monkeypatch.setattr(context, "_PROBE_SECONDS", 0)
    with serving(workspace) as server:
        assert server.call("GET", "/readyz").status == 200
        database = server.opened.context.host._store._database

        def set_writes(allowed):
            database._connection.execute(f"PRAGMA query_only = {not allowed}")

        async def allow(allowed):
            await database._thread.ask(lambda: set_writes(allowed))

        server.run(allow(False))
        assert server.call("GET", "/readyz").status == 503
        server.run(allow(True))
        assert server.call("GET", "/readyz").status == 200


def test_many_questions_whether_the_server_is_ready_write_once(server):
    records = server.opened.context.records

    def version():
        return server.run(records.record("", context.PROBE, "local")).version

    server.call("GET", "/readyz")
    before = version()
    for _ in range(20):
        server.call("GET", "/readyz")
    assert version() <= before + 1
