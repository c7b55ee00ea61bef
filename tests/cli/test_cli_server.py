"""Commands for the runs of a server print what they print for runs of this machine."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import weft as package
from support.desk_play import make_desk
from support.server_play import Server, serving
from support.terminal_play import Terminal
from weft.cli.app import main
from weft.cli.commands.top import load_of_metrics
from weft.cli.results import Result
from weft.cli.scope import set_scope
from weft.server.settings import ServerSettings

RUN = re.compile(r"\b01[0-9a-hjkmnp-tv-z]{24}\b")


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """The workspace of the server."""
    folder = tmp_path_factory.mktemp("shop")
    make_desk(folder)
    return folder


@pytest.fixture(scope="module")
def server(shop) -> Iterator[Server]:
    with serving(shop) as server:
        yield server


@pytest.fixture
def away(server, tmp_path, monkeypatch, typed):
    """A folder without packages, on a machine that has a key for the server."""
    monkeypatch.chdir(tmp_path)
    for name in ("WEFT_MODEL", "WEFT_SERVER", "WEFT_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WEFT_SERVER_KEY", server.key("me", "developer", "operator"))
    yield tmp_path
    set_scope(None, None)  # A process has one command; tests of other files follow in this one.


@pytest.fixture
def remote(weft, away, server):
    """Run a command with --server."""
    return lambda *words: weft(*words, "--server", server.url)


@pytest.fixture
def local(weft, shop):
    """Run a command in the workspace of the server."""
    return lambda *words: weft("--workspace", shop, *words)


def run_in(text: str) -> str:
    found = RUN.search(text)
    assert found, text
    return found[0]


def alike(outcome, *options: object):
    """What was printed, without the options and the id that differ."""
    texts = [RUN.sub("RUN", outcome.out), RUN.sub("RUN", outcome.err)]
    for option in options:
        texts = [text.replace(f" {option}", "") for text in texts]
    return (outcome.code, *(re.sub(r"\d\d:\d\d:\d\d|\d+\.\d+ s", "TIME", text) for text in texts))


def both(remote, local, server, shop, *words):
    """Expect the same from both; return what the server's command printed."""
    there, here = remote(*words), local(*words)
    options = (f"--server {server.url}", f"--workspace {shop}")
    assert alike(there, *options) == alike(here, *options)
    return there


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_run_is_printed_as_it_happens_here(remote, local, server, shop, more):
    words = ("run", "Desk", "hello", "--model", "sample", "--set", "limit=3", *more)
    there, here = remote(*words), local(*words)
    assert there.code == here.code == 4
    if more:
        kinds = [
            [json.loads(line).get("event", {}).get("kind") for line in outcome.out.splitlines()]
            for outcome in (there, here)
        ]
        assert kinds[0] == kinds[1]
        assert "RequestOpened" in kinds[0]
        return
    options = (f"--server {server.url}", f"--workspace {shop}")
    assert alike(there, *options) == alike(here, *options)
    assert f"weft runs answer {run_in(there.err)} TEXT --server {server.url}\n" in there.err


@pytest.mark.parametrize(
    "words",
    [
        ["runs", "list"],
        ["runs", "list", "--status", "ended", "--workflow", "HelloWorld", "--json"],
        ["runs", "show", "last"],
        ["runs", "show", "last", "--json"],
        ["runs", "tail", "last"],
        ["runs", "tail", "last", "--json"],
        ["runs", "tail", "last", "--as-user"],
        ["inspect", "last"],
        ["inspect", "last@1"],
        ["inspect", "last", "--json"],
        ["inspect", "last", "--spans"],
        ["inspect", "last", "--spans", "--json"],
        ["replay", "last"],
        ["replay", "last", "--check"],
    ],
    ids=" ".join,
)
def test_recorded_run_is_printed_the_same(remote, local, server, shop, words):
    assert remote("run", "HelloWorld", "hello", "--model", "sample").code == 0
    assert both(remote, local, server, shop, *words).out


def test_chat_is_continued_answered_repeated_and_stopped(remote, server, typed):
    typed("hello")
    begun = remote("chat", "Desk", "--model", "sample")
    run = run_in(begun.err)
    assert (begun.code, "Clerk (sample): " in begun.out) == (4, True)
    assert f"  continue: weft chat --run {run} --server {server.url}\n" in begun.err
    typed("more")
    continued = remote("chat", "--run", run)
    assert (continued.code, "you: hello" in continued.out + continued.err) == (4, True)
    resumed = remote("runs", "resume", run)
    assert (resumed.code, f"run {run} of Desk waits" in resumed.err) == (4, True)
    forked = remote("replay", run, "--fork", "1", "--set", "limit=7")
    assert f"continues from turn 1 of {run}" in forked.err
    child = run_in(forked.err)
    assert "limit = 7" in remote("inspect", child).out
    assert remote("runs", "cancel", child).out.startswith(f"run {child} was stopped")
    assert remote("runs", "show", child, "--json").data["run"]["outcome"] == "cancelled"
    refused = remote("runs", "answer", run, "--json-value", '{"approved": 3}')
    assert (refused.code, "invalid answer to approve" in refused.err) == (2, True)
    answered = remote("runs", "answer", run, '{"approved": true}')
    assert (answered.code, "Clerk (sample): " in answered.out) == (0, True)


def test_environment_and_settings_file_name_the_server(weft, away, server, monkeypatch, shop):
    listed = weft("runs", "list", "--json", "--server", server.url)
    monkeypatch.setenv("WEFT_SERVER", server.url)
    assert weft("runs", "list", "--json").out == listed.out
    assert "--server" not in weft("runs", "show", "zzz").err
    assert weft("runs", "list", "--journal", shop / ".weft/journal.db", "--json").out == listed.out
    monkeypatch.delenv("WEFT_SERVER")
    (away / "weft.toml").write_text(f'server = "{server.url}"\n')
    assert weft("runs", "list", "--json").out == listed.out


def test_no_key_is_needed_in_the_workspace_of_the_server(weft, away, server, shop, monkeypatch):
    monkeypatch.delenv("WEFT_SERVER_KEY")
    words = ("runs", "list", "--server", server.url)
    assert weft("--workspace", shop, *words).code == 0
    refused = weft(*words)
    assert refused.code == 3
    assert f"no key was found for the server {server.url}\n" in refused.err
    assert "set WEFT_SERVER_KEY, or use the server's workspace; make one" in refused.err


def test_servers_of_one_workspace_keep_their_keys_apart(weft, away, server, shop, monkeypatch):
    monkeypatch.delenv("WEFT_SERVER_KEY")
    with serving(shop) as second:
        assert weft("--workspace", shop, "runs", "list", "--server", second.url).code == 0
    assert weft("--workspace", shop, "runs", "list", "--server", server.url).code == 0
    assert len(list(shop.glob(".weft/server-*.json"))) == 1


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        ("run Nope hi", 6, "has no workflow Nope", "available: CustomerSupportRouter, Desk, "),
        ("run HelloWorld hi --set zzz=1", 6, "unknown variable zzz", "available: team_name"),
        ("run HelloWorld hi --seed 3", 2, "--seed is for runs in this process", "leave out"),
        ("run HelloWorld hi --model you", 2, "the model you needs a person", ""),
        ("run NewsDesk --model sample", 2, "begins with an artifact", "weft board publish"),
        ("run HelloWorld hi --journal x.db", 2, "--server and --journal exclude each other", ""),
        ("chat OrderProcessing", 2, "is a flow and takes no messages", "weft run OrderProcessing"),
        ("runs show zzz", 6, 'there is no run "zzz"', "list the runs: weft runs list --server "),
        ("runs list --all-apps", 2, "lists the runs of one tenant", "leave out --all-apps"),
        ("runs list --as user:bob", 2, "the key says who you are", "leave out --as"),
        ("--user bob runs list", 2, "the key says who you are", "leave out --app and --user"),
        ("runs resume last --take-over", 2, "a server takes over runs itself", "leave out"),
        ("runs delete --older-than 1d", 2, "unknown option --server", ""),
        ("--app x top", 2, "weft top shows all tenants", "leave out --app and --user"),
    ],
)
def test_wrong_use_is_refused(remote, words, code, message, hint):
    result = remote(*words.split())
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert hint in result.err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "HelloWorld", "hi"],
        ["chat", "HelloWorld"],
        ["runs", "list"],
        ["runs", "show", "last"],
        ["runs", "tail", "last"],
        ["runs", "cancel", "last"],
        ["runs", "resume", "last"],
        ["runs", "answer", "last", "x"],
        ["inspect", "last"],
        ["replay", "last"],
        ["top"],
    ],
    ids=" ".join,
)
def test_server_that_does_not_answer(weft, away, words):
    result = weft(*words, "--server", "http://127.0.0.1:1")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith(
        "error[CLI003]: the server http://127.0.0.1:1 does not answer\n"
        "  hint:  find the cause: weft doctor --server http://127.0.0.1:1\n"
    )
    failure = weft(*words, "--server", "127.0.0.1:1", "--json")
    assert (failure.code, failure.data["error"]["code"]) == (2, "CLI002")


def test_key_that_is_wrong_or_for_others(remote, server, monkeypatch):
    monkeypatch.setenv("WEFT_SERVER_KEY", "weft_wrong")
    wrong = remote("runs", "list")
    assert (wrong.code, wrong.out) == (3, "")
    assert "the server refuses the key: " in wrong.err
    monkeypatch.setenv("WEFT_SERVER_KEY", server.key("eve", "end_user", "clerk"))
    other = remote("inspect", "last")
    assert (other.code, other.out) == (3, "")
    assert "the key of eve is for: clerk, end_user; commands show what only dev" in other.err
    assert "WEFT_SERVER_KEY: weft keys create --role developer" in other.err


def test_server_that_is_away_for_a_while_is_noted(away, tmp_path):
    shop = tmp_path / "shop"
    make_desk(shop)
    with ExitStack() as stack:
        with serving(shop) as first:
            url = first.url
            key = first.key("me", "developer", "operator")
            body = {"workflow": "Desk", "message": "hi", "model": "sample"}
            run = first.post("/api/runs", body, key=key, status=201)["run"]
            words = ("runs", "tail", run, "--server", url)
            tail = stack.enter_context(
                Terminal(*words, cwd=away, environment={"WEFT_SERVER_KEY": key})
            )
            tail.wait_for("RunStarted")
        tail.wait_for("the server does not answer; trying again for 30 s\n")
        with serving(shop, settings=ServerSettings(port=urlsplit(url).port)) as second:
            tail.wait_for("connected again\n")
            second.post(f"/api/runs/{run}/cancel", {"mode": "now"}, key=key)
            tail.wait_for("RunEnded")
            assert tail.end() == 0


def test_runs_of_others_do_not_exist(remote, server, monkeypatch):
    mine = run_in(remote("run", "HelloWorld", "hi", "--model", "sample").err)
    monkeypatch.setenv("WEFT_SERVER_KEY", server.key("me", "developer", app="bank"))
    result = remote("inspect", mine)
    assert (result.code, f'there is no run "{mine}"' in result.err) == (6, True)


def test_other_version_is_named(remote, monkeypatch):
    monkeypatch.setattr(package, "__version__", "9.9.9")
    result = remote("runs", "list")
    assert result.code == 0
    assert re.match(r"the server has Weft [\d.]+, and this is 9\.9\.9\n", result.err)
    checks = {each["subject"]: each for each in remote("doctor", "--json").data["checks"]}
    assert (checks["version"]["state"], "pip install" in checks["version"]["remedy"]) == (
        "warn",
        True,
    )


def test_runs_are_deleted_only_where_they_are(weft, away, server, monkeypatch):
    monkeypatch.setenv("WEFT_SERVER", server.url)
    result = weft("runs", "delete", "--older-than", "1d")
    assert (result.code, result.out) == (2, "")
    assert "WEFT_SERVER names a server" in result.err


# -- weft doctor --server


def checks_of(outcome):
    return {each["subject"]: (each["state"], each["fact"]) for each in outcome.data["checks"]}


def test_doctor_checks_a_server(remote, weft, server, monkeypatch):
    good = remote("doctor", "--json")
    assert good.code == 0
    checks = checks_of(good)
    assert (checks["WEFT_PORT"], checks["WEFT_HOST"]) == (
        ("ok", "0 (flag)"), ("ok", "127.0.0.1 (default)"),
    )  # fmt: skip
    assert checks["--no-work"] == ("ok", "no (default)")
    # A worker whose heartbeat was late has a new id; the old one counts for a few seconds.
    runs, fact = checks.pop("server: runs")
    assert (runs, fact[:-1]) == ("ok", "runs that wait for a worker: 0; workers: ")
    assert {name: check for name, check in checks.items() if name.islower() and name[0] != "-"} == {
        "server": ("ok", f"{server.url} answers"),
        "key": ("ok", "me of local: developer, operator"),
        "version": ("ok", f"Weft {package.__version__}, gateway and worker"),
        "server: models": ("ok", "sample by default; no key is set"),
        "store": ("ok", "runs can be started"),
    }
    monkeypatch.setenv("WEFT_SERVER", server.url)
    assert {"python", "server", "store"} <= checks_of(weft("doctor", "--json")).keys()
    monkeypatch.setenv("WEFT_SERVER_KEY", server.key("eve", "end_user"))
    assert checks_of(remote("doctor", "--json"))["key"][0] == "warn"
    monkeypatch.setenv("WEFT_SERVER_KEY", "weft_wrong")
    wrong = remote("doctor", "--json")
    assert (wrong.code, checks_of(wrong)["key"][0], checks_of(wrong)["store"][0]) == (
        3,
        "fail",
        "ok",
    )


def test_doctor_warns_of_a_server_without_a_worker_and_without_a_model(weft, away, shop, tmp_path):
    make_desk(tmp_path / "idle")
    with serving(tmp_path / "idle", {"WEFT_MODEL": ""}, works=False) as idle:
        options = ("--workspace", tmp_path / "idle", "--server", idle.url)
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("WEFT_SERVER_KEY")
            found = {
                each["subject"]: each for each in weft("doctor", "--json", *options).data["checks"]
            }
    assert [found[f"server: {name}"]["state"] for name in ("runs", "models")] == ["warn", "warn"]
    assert found["server: runs"]["remedy"] == "start a worker: weft worker"
    assert found["server: models"]["fact"] == "no model is set; no key is set"


def test_doctor_reports_a_stopping_or_missing_server(remote, weft, server):
    context = server.opened.context
    context.is_stopping = True
    try:
        stopping = remote("doctor", "--json")
    finally:
        context.is_stopping = False
    assert stopping.code == 3
    assert checks_of(stopping)["store"] == ("fail", "the server is stopping")
    absent = weft("doctor", "--server", "http://127.0.0.1:1", "--json")
    assert absent.code == 3
    assert checks_of(absent) == {
        "server": ("fail", "the server http://127.0.0.1:1 does not answer")
    }
    with HTTPServer(("127.0.0.1", 0), _Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        found = checks_of(weft("doctor", "--server", url, "--json"))
        other.shutdown()
    assert found == {"server": ("fail", "the server answered 404 without a problem of Weft")}


class _Other(BaseHTTPRequestHandler):
    """Another program, which knows no path."""

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_arguments):
        """Print nothing."""


# -- weft top


def test_top_shows_what_a_server_and_its_store_count(remote, local, server):
    before = remote("top", "--json").data
    assert remote("run", "HelloWorld", "hi", "--model", "sample").code == 0
    after = remote("top", "--json").data
    assert after["source"] == server.url
    assert after["turns"]["ended"] == before["turns"]["ended"] + 1
    assert after["runs"]["ended"]["completed"] == before["runs"]["ended"].get("completed", 0) + 1
    assert all(each["heartbeat_age_seconds"] < 20 for each in after["workers"])
    assert server.opened.context.host.owner in {each["owner"] for each in after["workers"]}
    assert (after["queued"], after["sockets"]) == (0, 0)
    (tool,) = [each for each in after["tools"] if each["tool"] == "greet"]
    assert (tool["workflow"], tool["failed"]) == ("HelloWorld", 0)
    assert 0 < tool["mean_seconds"] < 20
    (model,) = [each for each in after["models"] if each["model"] == "sample"]
    assert model["calls"] >= 2
    (agent,) = [each for each in after["agents"] if each["workflow"] == "HelloWorld"]
    assert (agent["turns"] >= 1, agent["failed"]) == (True, 0)
    handoffs = [each for each in after["handoffs"] if each["workflow"] == "HelloWorld"]
    assert {each["source"] for each in handoffs} == {agent["agent"]}
    stored = local("top", "--json").data
    assert stored["sockets"] is None
    named = {"HelloWorld", "Desk"}
    calls = [
        {each["tool"]: each["calls"] for each in found["tools"] if each["workflow"] in named}
        for found in (after, stored)
    ]
    assert calls[0].items() <= calls[1].items()
    text = remote("top", "--once").out
    assert re.search(r"^WORKER\tRUNS\tHEARTBEAT\n", text, re.MULTILINE)
    assert re.search(r"^HelloWorld\.greet\t\d+\t0\t[\d.]+ s\t[\d.]+ s\n", text, re.MULTILINE)


def test_top_reads_histograms_and_escaped_labels():
    load = load_of_metrics(
        "http://server",
        "# TYPE weft_tool_calls_total counter\n"
        'weft_tool_calls_total{workflow="A",tool="a\\"b"} 20\n'
        "# TYPE weft_tokens_total counter\n"
        'weft_tokens_total{workflow="A",agent="B",direction="input"} 30\n'
        "# TYPE weft_handoffs_total counter\n"
        'weft_handoffs_total{workflow="A",source="B",target="user",rule="2"} 4\n'
        "# TYPE weft_tool_errors_total counter\n"
        'weft_tool_errors_total{workflow="A",tool="a\\"b",kind="timeout"} 2\n'
        "# TYPE weft_tool_duration_seconds histogram\n"
        + "".join(
            f'weft_tool_duration_seconds_bucket{{workflow="A",tool="a\\"b",le="{le}"}} {number}\n'
            for le, number in (("0.01", 10), ("0.05", 18), ("0.1", 19), ("+Inf", 20))
        )
        + 'weft_tool_duration_seconds_sum{workflow="A",tool="a\\"b"} 40\n'
        'weft_worker_runs{owner="w1"} 3\nweft_runs_waiting 5\nweft_sockets 7\n'
        "weft_runs_in_use 0\n",
    )
    assert Result(load.data()).content() | {"source": ""} == {
        "source": "",
        "counted": "since it was started",
        "workers": [{"owner": "w1", "runs": 3, "heartbeat_age_seconds": None}],
        "queued": 5,
        "sockets": 7,
        "runs": {"in_work": 3, "ended": {}},
        "turns": {"ended": 0, "failed": 0},
        "tokens": {"input": 30, "output": 0},
        "agents": [
            {
                "workflow": "A",
                "agent": "B",
                "turns": 0,
                "failed": 0,
                "input_tokens": 30,
                "output_tokens": 0,
            }
        ],
        "handoffs": [{"workflow": "A", "source": "B", "target": "user", "rule": "2", "times": 4}],
        "tools": [
            {
                "workflow": "A",
                "tool": 'a"b',
                "calls": 20,
                "failed": 2,
                "mean_seconds": 2.0,
                "most_within_seconds": 0.1,
            }
        ],
        "models": [],
    }


def test_top_is_shown_again_until_ctrl_c(away, server):
    with Terminal("top", "--server", server.url, cwd=away) as terminal:
        for _ in range(2):
            terminal.wait_for("source   ")
            terminal.wait_for("Ctrl-C leaves")
        terminal.press(b"\x03")
        assert terminal.end() == 130


def test_top_of_a_store_without_runs(weft, away):
    result = weft("top")
    assert (result.code, "there are no runs" in result.err) == (6, True)
    assert main(["--quiet", "top", "--journal", "nowhere/x.db"]) == 6
