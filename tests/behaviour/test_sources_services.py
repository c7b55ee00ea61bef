"""Values from services and files: asked as declared, recorded, and no nonsense is taken."""

import asyncio
import json

import pytest
from aiohttp import web

from support.model_play import run as run_bounded
from support.run_play import ADA, Seconds
from support.service_play import Service, said, to, with_headers
from support.source_play import Told, declared, derived, desk, play, tell, variable
from weft.adapters.services.http_services import HttpServices
from weft.app.hosts import LOCAL, open_host
from weft.engine.events import ContextFetched, TurnFailed, VariableRefused, VariableSet
from weft.ports.external import ExternalPorts
from weft.spec.variables import ExternalSource
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel, call

RATES = {"base": "EUR", "rates": {"usd": 1.1}, "days": [{"usd": 1.0}, {"usd": 1.2}]}


def external(url, type_="float", **source):
    usual = {"service": "rates", "operation": "latest", "url": url}
    return variable(type_, "external", **{**usual, **source})


def ask(*answers, type_="float", path="/latest", others=None, **options) -> Told:
    """Play a run whose one variable is what a service answers."""
    service = Service(*answers)
    source = {key: options.pop(key) for key in list(options) if key in SOURCE}
    declare = options.pop("declare", {})

    def spec(running):
        found = external(running.url(path), type_, **source)
        return declared({"rate": found, **(others or {})}, **declare)

    model = options.pop("model", None) or ScriptedModel(["Done."])
    told = play(spec, model, service=service, **options)
    told.expect_same_again()
    told.notes["service"] = service
    return told


SOURCE = frozenset(ExternalSource.model_fields)


@pytest.mark.parametrize(
    ("field", "type_", "value"),
    [
        ("rates.usd", "float", 1.1),
        ("base", "str", "EUR"),
        ("days.1.usd", "float", 1.2),
        ("days.usd", "list[float]", [1.0, 1.2]),
        (None, "dict[str, any]", RATES),
    ],
)
def test_field_takes_a_part_of_the_answer(field, type_, value):
    told = ask(RATES, field=field, type_=type_)
    assert told.of(VariableSet) == [VariableSet("rate", value, "source:external")]
    (fetched,) = told.of(ContextFetched)
    assert fetched.found["rate"].items() >= {"service": "rates", "operation": "latest"}.items()


def test_url_has_the_values_of_variables_in_it_encoded():
    told = ask(
        RATES,
        type_="dict[str, any]",
        path="/{chat_id}?to={city}&n={number}",
        others={
            "city": variable("str", "static", value="São Paulo/1&x=2"),
            "number": variable("int", "static", value=3),
        },
    )
    (seen,) = told.notes["service"].seen
    assert seen.path == f"/{told.run}"
    assert dict(seen.query) == {"to": "São Paulo/1&x=2", "n": "3"}


def test_url_may_begin_with_a_variable_that_is_its_first_part():
    service = Service(1.5)

    def spec(running):
        base = variable("str", "static", value=running.url("/v2"))
        return declared({"base": base, "rate": external("{base}/latest?{chat_id}")})

    told = play(spec, ScriptedModel(["Done."]), service=service)
    assert told.state.variables["rate"] == 1.5
    assert service.seen[0].path == "/v2/latest"


def test_url_may_begin_with_the_environment_and_says_what_is_not_set():
    def spec(_):
        base = variable("str", "environment", env_var="RATES_URL")
        return declared({"base": base, "rate": external("{base}/latest?q={chat_id}")})

    told = play(spec, ScriptedModel([]), service=Service(1.5), environment={})
    reason = "rate could not be read: the environment variable RATES_URL is not set"
    assert told.row.reason == reason
    there = {"RATES_URL": "ftp://rates.example"}
    told = play(spec, ScriptedModel([]), service=Service(1.5), environment=there)
    assert "its url is invalid" in told.row.reason
    there = {"RATES_URL": "http://10.0.0.1"}
    told = play(spec, ScriptedModel([]), service=Service(1.5), environment=there)
    assert "has a private address" in told.row.reason


@pytest.mark.parametrize(
    ("auth", "header", "sent"),
    [
        ({"type": "bearer"}, "Authorization", "Bearer k3y"),
        ({"type": "basic"}, "Authorization", "Basic dTpwdw=="),
        ({"type": "header", "header": "X-Key"}, "X-Key", "k3y"),
    ],
)
def test_auth_sends_the_secret_of_secret_env_as_its_type_says(auth, header, sent):
    secret = "u:pw" if auth["type"] == "basic" else "k3y"
    told = ask(
        RATES,
        type_="dict[str, any]",
        auth={**auth, "secret_env": "RATES_KEY"},
        environment={"RATES_KEY": secret},
    )
    assert told.notes["service"].seen[0].headers[header] == sent
    missing = ask(
        RATES, type_="dict[str, any]", auth={**auth, "secret_env": "RATES_KEY"}, environment={}
    )
    assert missing.row.reason == (
        "rate could not be read: the environment variable RATES_KEY is not set"
    )


def test_cache_gives_an_answer_again_until_its_ttl_seconds_are_over():
    async def scenario():
        clock = ManualClock()
        async with Service([1], [2], [3]) as service:
            source = external(service.url(), "list[int]", cache={"ttl_seconds": 60})
            services = HttpServices(clock, frozenset({service.place}))
            host = host_for(
                declared({"rate": source}),
                FunctionModel(lambda _: "Done."),
                clock=clock,
                outside=ExternalPorts(services=services),
            )
            found = []
            async with host:
                for seconds in (0, 59, 2, 0):
                    await clock.advance(seconds)
                    run = await host.start("W", scope=ADA, message="hello")
                    told = await tell(host, run)
                    note = told.of(ContextFetched)[0].found["rate"]
                    found.append((told.state.variables["rate"], note.get("cached", False)))
            return found

    assert run_bounded(scenario()) == [([1], False), ([1], True), ([2], False), ([2], True)]


def test_retry_asks_again_as_often_as_attempts_and_waits_backoff_seconds():
    waits = []

    class Patient(Seconds):
        async def sleep_until(self, at):
            waits.append(at - self.now())
            await super().sleep_until(at)

    retry = {"attempts": 3, "backoff_seconds": 1.5}
    told = ask(500, 429, 2.5, retry=retry, clock=Patient())
    assert told.state.variables["rate"] == 2.5
    assert told.of(ContextFetched)[0].found["rate"]["attempts"] == 3
    assert [round(wait, -2) for wait in waits if wait < 4000] == [500, 2000]
    given_up = ask(500, retry={"attempts": 2, "backoff_seconds": 0})
    assert given_up.row.outcome == "failed"
    assert len(given_up.notes["service"].seen) == 2


@pytest.mark.parametrize(("strategy", "times"), [("once", 1), ("per_phase", 2), ("on_demand", 3)])
def test_refresh_strategy_says_how_often_a_service_is_asked(strategy, times):
    said_go = {"type": "agent_text", "agent": "A", "match": {"contains": "go"}, "value": True}
    rules = [
        {"source_agent": "A", "target_agent": "B", "condition": "go == true"},
        {"source_agent": "A", "target_agent": "A"},
        {"source_agent": "B", "target_agent": "terminate"},
    ]
    told = ask(
        [1],
        [2],
        [3],
        type_="list[int]",
        refresh_strategy=strategy,
        others={"go": derived("bool", False, said_go)},
        declare={"agents": ("A", "B"), "handoffs": rules},
        model=ScriptedModel({"A": ["wait", "go"], "B": ["Done."]}),
    )
    assert told.values("rate") == [[number] for number in range(1, times + 1)]


def test_values_read_by_several_members_do_not_conflict():
    told = ask(
        [1],
        [2],
        [3],
        type_="list[int]",
        refresh_strategy="per_phase",
        declare={
            "agents": ("L", "A", "B"),
            "orchestrator": {
                "parallel": [{"name": "P", "members": ["A", "B"], "next": "terminate"}]
            },
            "handoffs": [{"source_agent": "L", "target_agent": "P"}],
        },
        model=FunctionModel(lambda _: "."),
    )
    assert len(told.notes["service"].seen) == 3
    assert told.state.variables["rate"] in ([2], [3])
    assert not told.of(VariableRefused)


async def endless(request):
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"[" * 65_536)


async def never(_request):
    await asyncio.sleep(30)
    return web.Response()


TROUBLES = {
    "busy": (429, {}, "it answered 429"),
    "broken": (500, {}, "it answered 500"),
    "slow": (never, {"timeout_seconds": 0.1}, "no answer within 0.1 s"),
    "wrong type": ("many", {}, 'it has the wrong shape: rate: expected float, got "many"'),
    "no JSON": (said(b"<html>"), {}, "the answer is not JSON"),
    "not there": (RATES, {"field": "rates.gbp"}, "it has the wrong shape"),
    "nothing": (None, {}, "it has the wrong shape: expected float, got null"),
    "endless": (endless, {"max_bytes": 100_000}, "it answers with more than 100000 bytes"),
    "private": (to("http://10.0.0.7/"), {}, "10.0.0.7:80 has a private address"),
    "metadata": (to("http://169.254.169.254/latest"), {}, "has a private address"),
    "forbidden": (with_headers(403), {}, "it answered 403"),
}


def test_timeout_seconds_and_max_bytes_are_what_an_answer_may_take():
    async def slow(_request):
        await asyncio.sleep(0.2)
        return web.json_response(1.5)

    assert ask(slow, timeout_seconds=5).state.variables["rate"] == 1.5
    assert "no answer within 0.05 s" in ask(slow, timeout_seconds=0.05).row.reason
    assert ask(1.5, max_bytes=3).state.variables["rate"] == 1.5
    assert "more than 2 bytes" in ask(1.5, max_bytes=2).row.reason


@pytest.mark.parametrize("default", [None, 2.0])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_service_in_trouble_gives_the_default_or_fails_the_turn(trouble, default):
    answer, source, reason = TROUBLES[trouble]
    told = ask(answer, default=default, **source)
    (fetched,) = told.of(ContextFetched)
    if default is None:
        assert told.row.outcome == "failed"
        assert told.row.reason.startswith("rate could not be read: ")
        assert reason in told.row.reason
        assert [event.kind for event in told.of(TurnFailed)] == ["source"]
        assert told.state.variables["rate"] is None
    else:
        assert told.row.outcome == "completed"
        assert told.state.variables["rate"] == 2.0
        taken = fetched.found["rate"]
        assert taken.get("default") or taken.get("found") is False
        assert reason in fetched.errors.get("rate", reason)


def test_a_type_that_may_be_null_takes_an_answer_of_nothing():
    told = ask({"discount": None}, field="discount", type_="optional[float]")
    assert told.row.outcome == "completed"
    assert told.of(ContextFetched)[0].found["rate"]["found"] is False


def write_package(folder, variables, rules=()):
    """Write a package of one agent that ends after its first reply."""
    folder.mkdir(parents=True)
    agents = [{"agent_name": "A", "prompt_sections": [{"id": "r", "content": "Say {rate}."}]}]
    files = {
        "orchestrator": {"workflow_name": folder.name, "initial_agent": "A"},
        "agents": {"agents": agents},
        "context_variables": {"definitions": variables, "agents": {"A": {"variables": ["rate"]}}},
        "handoffs": {"handoff_rules": [{"source_agent": "A", "target_agent": "terminate"}]},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.mark.parametrize("allowed", [True, False])
def test_the_operator_allows_hosts_of_this_machine(tmp_path, allowed):
    async def scenario():
        async with Service(1.5) as service:
            found = external(service.url("/"))
            write_package(tmp_path / "workflows" / "Rates", {"rate": found})
            settings = {"WEFT_MODEL": "sample"}
            if allowed:
                settings["WEFT_ALLOW_HOSTS"] = service.place
            async with await open_host(tmp_path, journal=":memory:", environment=settings) as host:
                run = await host.start("Rates", scope=LOCAL, message="hello")
                row = await host.settled(run, scope=LOCAL)
                state = await host.state(run, scope=LOCAL)
                return row.outcome, row.reason, state.variables["rate"]

    outcome, reason, rate = run_bounded(scenario())
    if allowed:
        assert (outcome, rate) == ("completed", 1.5)
    else:
        assert (outcome, rate) == ("failed", None)
        assert "WEFT_ALLOW_HOSTS" in reason


FILES = {
    "notes.txt": "Ask before noon.\n",
    "prices.json": '{"small": 3}',
    "prices.yaml": "small: 3\nsince: 2026-01-02\n",
}


@pytest.mark.parametrize(
    ("path", "format_", "type_", "value"),
    [
        ("notes.txt", "text", "str", "Ask before noon.\n"),
        ("prices.json", "json", "dict[str, int]", {"small": 3}),
        ("prices.json", "text", "str", '{"small": 3}'),
        ("prices.yaml", "yaml", "dict[str, any]", {"small": 3, "since": "2026-01-02"}),
    ],
)
def test_a_file_is_read_from_its_path_in_its_format(tmp_path, path, format_, type_, value):
    (tmp_path / path).write_text(FILES[path])
    spec = declared({"read": variable(type_, "file", path=path, format=format_)})
    told = play(spec, ScriptedModel(["Done."]), files=tmp_path)
    assert told.of(VariableSet) == [VariableSet("read", value, "source:file")]
    assert told.of(ContextFetched)[0].found["read"]["path"] == path
    told.expect_same_again()


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize("default", [None, {"small": 1}])
@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("gone.json", None, "is neither in the package W nor in the workspace"),
        ("../up.json", "{}", "name a plain file"),
        (".env", "{}", "name a plain file"),
        ("secrets.json", "{}", "may hold secrets, by its name"),
        ("broken.json", "{", "is not valid json"),
        ("wrong.json", "[1]", "it has the wrong shape"),
        ("null.json", "null", "it has the wrong shape"),
        ("broken.yaml", "a: [", "is not valid yaml"),
        ("self.yaml", "a: &a\n  b: *a\n", "is not valid yaml"),
        ("bomb.yaml", BOMB, "is not valid yaml"),
        ("number.yaml", "a: .nan\n", "is not valid yaml"),
    ],
)
def test_unusable_file_gives_the_default_or_fails_the_turn(tmp_path, path, content, told, default):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    if content is not None:
        (workspace / path).write_text(content)
    format_ = path.rpartition(".")[2].replace("env", "json")
    source = {"path": path, "format": format_, "default": default}
    spec = declared({"read": variable("dict[str, any]", "file", **source)})
    run = play(spec, ScriptedModel(["Done."]), files=workspace)
    (fetched,) = run.of(ContextFetched)
    assert told in fetched.errors["read"]
    assert run.row.outcome == ("failed" if default is None else "completed")
    assert run.state.variables["read"] == default
    run.expect_same_again()


def test_a_tool_reads_a_file_again(tmp_path):
    code = desk(
        "async def look(context_variables) -> list:\n"
        '    """Read again."""\n'
        '    return [context_variables["read"], await context_variables.refresh("read")]'
    )
    (tmp_path / "notes.txt").write_text("old")
    spec = declared({"read": variable("str", "file", path="notes.txt")}, tools=["look"])

    def reply(request):
        (tmp_path / "notes.txt").write_text("new")
        return "Done." if request.messages[-1]["role"] == "tool" else call("look")

    told = play(spec, FunctionModel(reply), code=code, files=tmp_path)
    assert told.values("read") == ["old", "new"]
