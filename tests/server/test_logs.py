"""The log of `weft serve --log-format json`: an object per line, and no secret in any."""

import io
import json
import logging
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from support.counted_play import make_shop, model_process
from support.server_play import PATIENCE
from support.server_process import ServerProcess
from weft.app.logs import JsonLog
from weft.runtime.variables.json_values import MASK

TOKEN = "tok-7f3a9c51"


class Log:
    """The lines of a log, and the ids of the requests that it is about."""

    def __init__(self, text, run, requests):
        self.text = text
        self.lines = [json.loads(line) for line in text.splitlines()]
        self.run = run
        self.requests = requests

    def having(self, part):
        return [line for line in self.lines if part in line["message"]]


def ask(server, path, body=None, **headers):
    """Send a request; return the status, the headers and the JSON of the answer."""
    given = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json", **headers}
    content = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(f"{server.url}{path}", content, given), timeout=PATIENCE) as answer:
            return answer.status, answer.headers, json.load(answer)
    except HTTPError as error:
        return error.code, error.headers, json.load(error)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a server that has performed a run with a tool that fails."""
    workspace = make_shop(tmp_path_factory.mktemp("workspace"))
    file = workspace / "log.txt"
    requests = {}
    with model_process() as model, file.open("w") as errors:
        server = ServerProcess(
            workspace,
            errors=errors,
            options=["--log-format", "json"],
            environment={**model, "SHOP_TOKEN": TOKEN},
        )
        try:
            _, headers, started = ask(server, "/api/runs", {"workflow": "Shop", "message": "hi"})
            requests["start"] = headers["x-request-id"]
            _, headers, _ = ask(server, "/healthz", **{"x-request-id": "of-the-proxy.7"})
            requests["given"] = headers["x-request-id"]
            _, headers, _ = ask(server, "/healthz", **{"x-request-id": '{"not": "one"}'})
            requests["wrong"] = headers["x-request-id"]
            _, headers, _ = ask(server, "/api/runs/nothing")
            requests["missing"] = headers["x-request-id"]
            end, row = monotonic() + PATIENCE, {"status": ""}
            while row["status"] != "ended":
                assert monotonic() < end, row
                sleep(0.05)
                row = ask(server, f"/api/runs/{started['run']}")[2]
            server.stop()
        finally:
            if server.popen.poll() is None:
                server.kill()
    return Log(file.read_text(), started["run"], requests)


def test_each_line_is_an_object_with_its_time_level_and_source(log):
    for line in log.lines:
        assert {"time", "level", "logger", "message"} <= set(line)
        assert line["time"].endswith("Z")
        assert line["level"] in ("info", "warning", "error")
    assert log.having("stopping; press Ctrl-C again to stop at once")
    assert log.having("stopped: 0 runs released")


def test_lines_about_a_run_name_its_tenant_and_event(log):
    (line,) = log.having("the tool fail failed with ValueError")
    assert line["logger"] == "weft.tools"
    assert (line["level"], line["app"], line["run"]) == ("warning", "local", log.run)
    assert line["seq"] > 1
    assert "tools/shop.py:" in line["message"]
    (own,) = log.having("the token is")
    assert (own["logger"], own["seq"]) == ("weft.shop", line["seq"])


def test_requests_are_logged_with_the_id_of_their_answer(log):
    def line_of(which):
        id_ = log.requests[which]
        (line,) = [line for line in log.lines if line.get("request") == id_ and "route" in line]
        assert line["logger"] == "weft.http"
        assert line["ms"] >= 0
        return line["method"], line["route"], line["status"]

    assert line_of("start") == ("POST", "/api/runs", 201)
    assert line_of("given") == ("GET", "/healthz", 200)
    assert line_of("wrong") == ("GET", "/healthz", 200)
    assert line_of("missing") == ("GET", "/api/runs/{run}", 404)
    assert log.requests["given"] == "of-the-proxy.7"
    assert log.requests["wrong"] != '{"not": "one"}'


def test_a_run_outlives_the_request_that_started_it(log):
    """Lines of the run do not name that request, which ended before."""
    (line,) = log.having("the tool fail failed with ValueError")
    assert "request" not in line


def test_secrets_and_passwords_in_addresses_are_masked(log):
    (token,) = log.having("the token is")
    assert token["message"] == f"the token is {MASK}"
    (database,) = log.having("the database is")
    assert database["message"] == "the database is postgresql://shop@db.example/shop"
    assert TOKEN not in log.text
    assert "hunter2" not in log.text


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("%d pieces", ("many",), "%d pieces ('many',)"),
        ("two %s %s", ("one",), "two %s %s ('one',)"),
        ("of %(name)s", ({"other": 1},), "of %(name)s {'other': 1}"),
        ("the key is %d", (TOKEN,), f"the key is %d ('{MASK}',)"),
        ("a\nb", (), "a\nb"),
    ],
)
def test_a_record_whose_arguments_do_not_match_is_a_line_too(text, arguments, message):
    stream = io.StringIO()
    record = logging.LogRecord("weft.shop", logging.INFO, "shop.py", 1, text, arguments, None)
    record.fields = "of another library"
    JsonLog(stream, {"SHOP_TOKEN": TOKEN}).emit(record)
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["message"] == message


def test_tracebacks_are_masked_too():
    stream = io.StringIO()
    error = ValueError(f"{TOKEN} is wrong")
    given = (ValueError, error, None)
    record = logging.LogRecord("weft.shop", logging.ERROR, "shop.py", 1, "failed", (), given)
    JsonLog(stream, {"SHOP_TOKEN": TOKEN, "SHOP_KEY": "short", "SHOP_NAME": "failed"}).emit(record)
    line = json.loads(stream.getvalue())
    assert line["message"] == "failed", "neither a short value nor another setting is a secret"
    assert line["error"] == f"ValueError: {MASK} is wrong\n"
