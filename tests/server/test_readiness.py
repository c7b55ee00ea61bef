"""Whether a server is ready while the store that its runs are in is lost."""

import asyncio
import json
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.desk_play import make_desk
from support.postgres_server import PostgresServer
from support.server_play import serving
from support.server_process import processes
from support.slow_tool import SLOW_GREET
from weft.adapters.sql.postgres.schema import migrate

#: Seconds for what the server does by itself, on a machine that may be busy.
PATIENCE = 30


@pytest.fixture
def postgres():
    """A server of its own: it is stopped."""
    made = PostgresServer.create()
    yield made
    made.remove()


def call(url, method, path, key="", body=None):
    """Return the status and the content of an answer."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def wait_until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def test_server_is_not_ready_while_postgres_is_lost_and_its_runs_end_afterwards(
    tmp_path, monkeypatch, postgres
):
    asyncio.run(migrate(postgres.url))
    make_desk(tmp_path)
    (tmp_path / "workflows/HelloWorld/tools/greet.py").write_text(SLOW_GREET)
    monkeypatch.chdir(tmp_path)
    Path("seconds.txt").write_text("2")
    calls = Path("calls.txt")
    with serving(tmp_path, {"WEFT_STORE": postgres.url}) as made:
        key = made.key("ada", "end_user", "developer")
    with processes(tmp_path, postgres.url, 1) as [server]:

        def status(path):
            return call(server.url, "GET", path, key)[0]

        assert status("/readyz") == 200
        body = {"workflow": "HelloWorld", "message": "hi", "model": "sample"}
        code, begun = call(server.url, "POST", "/api/runs", key, body)
        assert code == 201, begun
        wait_until(lambda: calls.exists() and calls.read_text() == "begin\n")
        postgres.stop()
        wait_until(lambda: status("/readyz") == 503)
        assert status("/healthz") == 200
        wait_until(lambda: calls.read_text() == "begin\nend\n")
        assert status("/readyz") == 503, "the result of the call waits"
        postgres.start()
        wait_until(lambda: status("/readyz") == 200)
        path = f"/api/runs/{begun['run']}"
        wait_until(lambda: call(server.url, "GET", path, key)[1].get("outcome") == "completed")
    assert calls.read_text() == "begin\nend\n", "the call is not repeated"
