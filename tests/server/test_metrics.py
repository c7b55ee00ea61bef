"""/metrics for Prometheus: what is counted, who may read it, and what bounds it."""

from collections.abc import Iterator
from time import monotonic

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.counted_play import make_shop, model_process
from support.server_play import PATIENCE, serving
from support.socket_play import Socket
from weft.inspect import totals
from weft.server import metrics


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    with model_process() as settings:
        yield settings


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return make_shop(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def server(workspace, model):
    with serving(workspace, model) as server:
        yield server


@pytest.fixture(autouse=True)
def current(monkeypatch):
    """Workers and waiting runs are read again for every page."""
    monkeypatch.setattr(metrics, "_CURRENT", 0)


def samples(text):
    """The values of a page by name and labels, which are sorted by their names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def read(server):
    reply = server.call("GET", "/metrics")
    assert (reply.status, reply.headers["content-type"].split(";")[0]) == (200, "text/plain")
    return samples(reply.content.decode())


def play(server):
    """Play a run to its end."""
    ada = server.key("ada", "end_user")
    body = {"workflow": "Shop", "message": "hi", "force": True}
    run = server.post("/api/runs", body, key=ada, status=201)
    assert server.settled(run["run"], ada)["outcome"] == "completed"


def new_by_play(server):
    """Return what a run adds: the differences that are not 0, and those of one metric."""
    before = read(server)
    play(server)
    new = {name: value - before.get(name, 0) for name, value in read(server).items()}
    new = {name: value for name, value in new.items() if value}

    def of(metric):
        return {tuple(labels): value for (name, *labels), value in new.items() if name == metric}

    return of


def test_a_run_is_counted_by_turns_tools_models_handoffs_and_tokens(server):
    play(server)
    of = new_by_play(server)
    assert of("weft_runs_total") == {("completed", "Shop"): 1}
    assert of("weft_turns_total") == {
        ("Clerk", "ended", "Shop"): 1,
        ("Helper", "ended", "Shop"): 1,
    }
    # The labels are the rule, the source and the target.
    assert of("weft_handoffs_total") == {
        ("0", "Clerk", "Helper", "Shop"): 1,
        ("1", "Helper", "terminate", "Shop"): 1,
    }
    assert of("weft_tool_calls_total") == {
        (tool, "Shop"): 1 for tool in ("slow", "refuse", "fail", "(unknown)")
    }
    assert of("weft_tool_errors_total") == {
        ("refused", "refuse", "Shop"): 1,
        ("error", "fail", "Shop"): 1,
        ("unknown", "(unknown)", "Shop"): 1,
    }
    tokens = of("weft_tokens_total")
    assert set(tokens) == {
        (agent, direction, "Shop")
        for agent in ("Clerk", "Helper")
        for direction in ("input", "output")
    }
    assert tokens["Helper", "output", "Shop"] == 1  # "BYE"
    assert tokens["Clerk", "input", "Shop"] > tokens["Helper", "input", "Shop"] > 1


def test_durations_of_tools_and_models_are_counted(server):
    of = new_by_play(server)
    counts = of("weft_tool_duration_seconds_count")
    assert counts["slow", "Shop"] == 1
    assert of("weft_tool_duration_seconds_sum")["slow", "Shop"] >= 0.06
    ranges = of("weft_tool_duration_seconds_bucket")
    assert ("0.05", "slow", "Shop") not in ranges, "it took longer"
    assert ranges["+Inf", "slow", "Shop"] == ranges["60.0", "slow", "Shop"] == 1
    assert of("weft_model_duration_seconds_count") == {("mock", "replied"): 6}
    assert of("weft_model_duration_seconds_sum")["mock", "replied"] > 0


def test_requests_are_counted_by_route_and_status(server):
    before = read(server)
    for path in ("/healthz", "/nowhere/1", "/nowhere/2"):
        server.call("GET", path)
    after = read(server)

    def new(*labels):
        name = ("weft_http_requests_total", *labels)
        return after.get(name, 0) - before.get(name, 0)

    assert new("GET", "/healthz", "200") == 1
    assert new("GET", "(none)", "404") == 2
    assert after["weft_http_request_duration_seconds_count", "GET", "/healthz"] >= 1


def test_open_sockets_are_counted(server):
    assert read(server)["weft_sockets",] == 0
    key = server.key("ada", "end_user")
    with Socket(server.url, key), Socket(server.url, key):
        assert read(server)["weft_sockets",] == 2
    end = monotonic() + PATIENCE
    while read(server)["weft_sockets",]:  # The server sees the end a little later.
        assert monotonic() < end, "closed sockets are counted"


def test_waiting_runs_and_heartbeats_of_workers_are_read_from_the_store(tmp_path, model):
    with serving(make_shop(tmp_path), model, works=False) as gateway:
        body = {"workflow": "Shop", "message": "hi", "force": True}
        ada = gateway.key("ada", "end_user")
        runs = [gateway.post("/api/runs", body, key=ada, status=201)["run"] for _ in range(2)]
        found = read(gateway)
        assert found["weft_runs_waiting",] == 2
        assert ("weft_runs_in_use",) not in found, "this process performs no runs"
        with serving(tmp_path, model) as worker:
            for run in runs:
                gateway.settled(run, ada)
            owner = worker.opened.context.host.owner
            found = read(gateway)
            assert found["weft_runs_waiting",] == 0
            assert 0 <= found["weft_worker_heartbeat_age_seconds", owner] < 15
            assert read(worker)["weft_runs_in_use",] == 0


# -- who may read


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Via", "Forwarded"])
def test_requests_that_were_passed_on_need_a_key_of_an_operator_of_local(server, header):
    def ask(key=""):
        return server.call("GET", "/metrics", key=key, headers={header: "10.0.0.1"})

    assert ask().status == 401
    assert ask("wft_0123456789ab_wrong").status == 401
    assert ask(server.key("op", "operator")).status == 200
    assert ask(server.key("ada", "end_user")).status == 404
    assert ask(server.key("dev", "developer")).status == 404
    root = server.key("root", "administrator")
    if "shop" not in str(server.get("/api/apps", key=root)):
        server.post("/api/apps", {"app": "shop"}, key=root)
    reply = ask(server.key("op", "operator", app="shop"))
    assert (reply.status, reply.data["message"]) == (404, "not found")


# -- bounds


def test_what_is_beyond_the_most_series_is_counted_as_other(tmp_path, model, monkeypatch):
    monkeypatch.setattr(totals, "MAX_SERIES", 2)
    with serving(make_shop(tmp_path), model) as server:
        of = new_by_play(server)
        assert of("weft_tool_calls_total") == {
            ("slow", "Shop"): 1,
            ("refuse", "Shop"): 1,
            ("(other)", "(other)"): 2,
        }
        ranges = of("weft_tool_duration_seconds_bucket")
        assert {labels[1:] for labels in ranges} == {
            ("slow", "Shop"),
            ("refuse", "Shop"),
            ("(other)", "(other)"),
        }
