"""Runs become scenarios that pass: flows, boards, runs with timers, documents and services."""

import asyncio
from dataclasses import replace

import pytest
import yaml

from support.boundary_play import declared, derived
from weft.app.recorded_scenarios import save_scenario
from weft.app.scenarios import facts_of, run_scenario
from weft.errors import UsageError
from weft.packages.reader import read_package
from weft.packages.scenarios import read_scenario
from weft.packages.workspace import shipped_folder
from weft.packages.writer import write_package
from weft.ports.external import ExternalPorts, ServiceAnswer
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, CancelRequest, Stop, UserMessage
from weft.testing import ManualClock, ScriptedModel, call, host_for

ADA = Scope("app", "ada")
MANAGER = Scope("app", "max", roles=("manager",))
DIRECTOR = Scope("app", "eva", roles=("director",))

CODE = b'''
import itertools, os, time
from weft import Refuse, use_ui_tool
_calls = itertools.count(1)

def stamp(text: str, context_variables) -> str:
    """Set a value that is another one each time."""
    context_variables.set("stamp", str(time.time_ns()))
    return text

def look(text: str) -> dict:
    """Return another result each time."""
    return {"text": f"{text} {next(_calls)}"}

def refuse(text: str) -> str:
    """Refuse."""
    raise Refuse("no")

async def ask() -> dict:
    """Ask a person."""
    return await use_ui_tool("ask", {}, timeout=60)

async def consult(text: str, context_variables) -> str:
    """Ask a model."""
    return await context_variables.ask(text)

def route(text: str, context_variables) -> str:
    """Decide something else each time."""
    context_variables.set("way", os.environ.pop("WAY_OF_THE_TEST", "2"))
    return text
'''


def tool(name, **rest):
    base = {"agent": "A", "file": "t.py", "function": name, "description": "Does it."}
    return {"tool_type": "Agent_Tool", **base, **rest}


SPEC = declared(
    "A",
    handoffs=[
        {"source_agent": "A", "target_agent": "terminate", "condition": "way == '1'"},
        {
            "source_agent": "A", "target_agent": "terminate", "condition_type": "llm",
            "condition": "the user is content",
        },
        {"source_agent": "A", "target_agent": "user"},
    ],
    orchestrator={"llm_conditions": True},
    variables={
        "stamp": derived("str", ""),
        "seen": derived(
            "str", "", {"type": "tool_response", "tool": "look", "response_key": "text"}
        ),
        "late": derived("bool", False, {"type": "timer_expired", "after_seconds": 90}),
        "kept": derived("int", 0),
        "way": derived("str", ""),
        "plan": {
            "type": "str",
            "source": {
                "type": "database", "collection": "Customers", "search_by": "user_id",
                "field": "plan.name",
            },
        },
        "orders": {
            "type": "list[str]",
            "source": {
                "type": "database", "collection": "Orders", "search_by": "user_id",
                "field": "title", "find": "many",
            },
        },
        "file": {
            "type": "dict",
            "source": {"type": "entity", "collection": "Files", "search_by": "user_id"},
        },
        "rate": {
            "type": "float",
            "source": {
                "type": "external", "service": "rates", "operation": "get",
                "url": "https://rates.example", "field": "rate",
            },
        },
    },
    exposure={"A": ["stamp", "seen", "plan", "orders", "file", "rate", "kept"]},
    tools=[
        *map(tool, ("stamp", "look", "refuse", "consult", "route")),
        tool("ask", tool_type="UI_Tool", ui={"component": "Ask", "mode": "inline"}),
    ],
)  # fmt: skip
#: The judgement of the rule that ends a run.
NO = {"holds": False, "reason": "Not yet."}
DOCUMENTS = {
    "Customers": [{"user_id": "bob"}, {"user_id": "ada", "plan": {"name": "gold"}}],
    "Orders": [{"user_id": "ada", "title": "lamp"}, {"user_id": "ada", "title": "desk"}],
    "Files": [{"user_id": "ada", "note": "old"}],
}


class Rates:
    async def ask(self, scope, request):
        return ServiceAnswer({"rate": 1.25})

    async def close(self):
        """Nothing is open."""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workflows") / "W"
    write_package(folder, SPEC, {"tools/t.py": CODE})
    return read_package(folder)


def saved(package, script, play, *, start=None, **given):
    """Play a run, and return it as a saved scenario: its data, and the volatile variables."""

    async def check(text):
        file = read_scenario(package, "tests/saved.yaml", text.encode())
        assert file.errors == ()
        return (await run_scenario(package, file)).as_json()

    async def story():
        clock = ManualClock()
        model = ScriptedModel(script, strict=False)
        async with host_for(
            package.spec, model, code=package.code, clock=clock, documents=DOCUMENTS,
            outside=ExternalPorts(services=Rates()),
        ) as host:  # fmt: skip
            name = package.spec.orchestrator.workflow_name
            run = await (start(host) if start else host.start(name, scope=ADA, **given))
            await host.idle(run, scope=ADA)
            for step in play:
                await step(host, run, clock)
                await host.idle(run, scope=ADA)
            row = await host.run(run, scope=ADA)
            text, volatile = await save_scenario(await facts_of(host, row), check)
            assert (await check(text))["passed"]
            return yaml.safe_load(text), volatile

    return asyncio.run(asyncio.wait_for(story(), 30))


def deliver(make, scope=ADA):
    """Return a step that answers or closes the open request, or sends another signal."""

    async def step(host, run, clock):
        [asked] = await host.requests(scope=Scope.operator("app"), run=run)
        await host.deliver(run, make(asked.id), scope=scope)

    return step


def after(seconds):
    async def step(host, run, clock):
        await clock.advance(seconds)

    return step


def say(text):
    return deliver(lambda _: UserMessage(text))


def test_approval_that_went_to_the_director_after_an_hour():
    package = read_package(shipped_folder() / "OrderProcessing")
    decide = deliver(lambda id_: Answer(id_, {"decision": "approve"}), DIRECTOR)
    data, volatile = saved(
        package, {"Writer": ["On its way."]}, [after(3600), decide], values={"amount": 900.0}
    )
    assert data["steps"] == [
        {"wait": 3600.0},
        {"answer": "ReleaseOrder", "value": {"decision": "approve"}, "as": "role:director"},
    ]
    assert (data["values"], data["replies"], volatile) == (
        {"amount": 900.0},
        {"Writer/WriteMessage": ["On its way."]},
        [],
    )
    assert data["expect"]["variables"]["parcel"] == "parcel-A-1"
    assert data["expect"]["requests"] == {"ReleaseOrder": "role:director"}


def test_board_with_two_leads():
    package = read_package(shipped_folder() / "NewsDesk")
    lead = {"headline": "Bridge", "source": "radio", "contact": "Ada", "urgency": 1}

    async def start(host):
        first = await host.publish("NewsDesk", "Lead", lead, scope=ADA)
        more = {**lead, "headline": "Ducks"}
        await host.publish("NewsDesk", "Lead", more, scope=ADA, correlation=first.correlation_id)
        await host.quiet()
        return first.run

    data, _ = saved(package, {}, [], start=start)
    assert [each["headline"] for each in data["input"]["Lead"]] == ["Bridge", "Ducks"]
    assert (data["expect"]["route"], data["expect"]["outcome"]) == ([], "waiting")


def test_documents_services_and_start_values(package):
    data, _ = saved(package, {"A": ["Hi", NO]}, [], message="hello", values={"kept": 3})
    assert data["documents"] == {
        "Customers": [{"user_id": "ada", "plan": {"name": "gold"}}],
        "Orders": [{"user_id": "ada", "title": "lamp"}, {"user_id": "ada", "title": "desk"}],
        "Files": [{"user_id": "ada", "note": "old"}],
    }
    assert (data["user"], data["message"]) == ("ada", "hello")
    assert data["values"] == {"kept": 3, "rate": 1.25}


def test_tools_that_only_return_something_are_not_called_again(package):
    script = {
        "A": [
            [call("look", text="x"), call("stamp", text="y")],
            call("refuse", text="z"),
            "Done",
            NO,
        ]
    }
    data, volatile = saved(package, script, [], message="hello")
    assert (data["tools"], volatile) == ({"look": [{"text": "x 1"}]}, ["stamp"])
    assert data["expect"]["variables"] == {"seen": "x 1"}
    looked, refused, *_ = data["replies"]["A"]
    assert looked == [{"look": {"text": "x"}}, {"stamp": {"text": "y"}}]
    assert refused == [{"refuse": {"text": "z"}}]


def test_questions_that_expire_or_are_closed_and_timers(package):
    script = {
        "A": [
            call("ask"),
            "Nobody.",
            NO,
            call("ask"),
            "Closed.",
            NO,
            ["Look", call("ask")],
            "Thanks.",
            NO,
        ]
    }
    play = [
        after(60), say("again"), deliver(CancelRequest), after(100), say("again"),
        deliver(lambda id_: Answer(id_, {"a": 1})),
    ]  # fmt: skip
    data, _ = saved(package, script, play, message="hello")
    assert data["steps"] == [
        {"wait": 60.0},
        {"say": "again"},
        {"cancel": "ask", "as": "user:ada"},
        {"wait": 30.0},
        {"say": "again"},
        {"answer": "ask", "value": {"a": 1}},
    ]
    assert data["expect"]["variables"] == {"late": True}
    assert data["replies"]["A"][6] == ["Look", {"ask": {}}]


def test_models_that_fail_judge_or_are_asked_by_tools(package):
    data, _ = saved(package, {"A": []}, [], message="hello")
    assert (data["replies"], data["expect"]["outcome"]) == ({"A": [None]}, "failed")
    content = {"holds": True, "reason": "He says so."}
    script = {"A": [call("consult", text="Really?"), "Yes", "Done", content]}
    data, _ = saved(package, script, [], message="hello")
    assert data["replies"]["A"] == [[{"consult": {"text": "Really?"}}], "Yes", "Done", content]
    assert data["expect"]["outcome"] == "completed"


def test_run_that_was_stopped(package):
    stop = deliver(lambda _: Stop("now"))
    data, _ = saved(package, {"A": ["Hi", NO]}, [stop], message="hello")
    assert (data["steps"], data["expect"]["outcome"]) == ([{"stop": "now"}], "cancelled")


def test_run_that_goes_otherwise_each_time_is_refused(package, monkeypatch):
    monkeypatch.setenv("WAY_OF_THE_TEST", "1")
    script = {"A": [call("route", text="x"), "Done", NO]}
    with pytest.raises(UsageError, match="cannot be saved, as it goes otherwise: the outcome"):
        saved(package, script, [], message="hello")


def test_run_at_work_and_fork_with_other_values_are_refused(package):
    async def story():
        script = ScriptedModel({"A": ["Hi", NO] * 3})
        outside = ExternalPorts(services=Rates())
        async with host_for(
            SPEC, script, code={"tools/t.py": CODE}, outside=outside, documents={}
        ) as host:
            run = await host.start("W", scope=ADA, message="hello")
            await host.settled(run, scope=ADA)
            child = await host.fork(run, scope=ADA, turn=1, values={"kept": 4})
            await host.settled(child, scope=ADA)
            facts = await facts_of(host, await host.run(child, scope=ADA))
            with pytest.raises(UsageError, match="is a fork with other values"):
                await save_scenario(facts, None)
            with pytest.raises(UsageError, match="is running"):
                await save_scenario(replace(facts, row=facts.row._replace(status="running")), None)

    asyncio.run(asyncio.wait_for(story(), 30))
