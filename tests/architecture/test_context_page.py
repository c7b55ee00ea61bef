"""The pages about context and triggers: every source and trigger has an example that works."""

import asyncio
import json
import re
import shlex
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

import pytest

from support.page_play import CONTEXT, DOCS, Desk, chapter, open_desk, read_example, sections
from support.service_play import Service
from weft import Answer, Context
from weft.app.folders import LOCAL
from weft.cli.app import main
from weft.engine.events import ToolReturned
from weft.engine.state import State
from weft.errors import CheckFailed, ModelError, UsageError
from weft.runtime.host import Host
from weft.spec.part import Part
from weft.spec.triggers import CUSTOM, Trigger
from weft.spec.variables import Source, Variable
from weft.testing import ManualClock, call


def kinds(union: object) -> dict[str, type[Part]]:
    """Return the members of a union that is told apart by a field, by the value of the field."""
    members = get_args(get_args(union)[0])
    return {member.model_fields["type"].default: member for member in members}


def parts(heading: str) -> dict[str, str]:
    found = sections(chapter(CONTEXT, heading))
    return {name: text for name, text in found.items() if name}


SOURCES, TRIGGERS = parts("Sources"), parts("Triggers")
EXAMPLES = {name: read_example(text) for name, text in {**SOURCES, **TRIGGERS}.items()}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return open_desk(tmp_path, monkeypatch)


Play = Callable[[Desk], Awaitable[State]]


def said(*messages: str, clerk: Sequence[Any] = (), helper: Sequence[Any] = ()) -> Play:
    """Return the play of an example that needs nothing but what is said."""

    async def play(desk: Desk) -> State:
        desk.clerk, desk.helper = clerk or desk.clerk, helper or desk.helper
        return await desk.play(*(messages or ("hello",)))

    return play


async def environment(desk: Desk) -> State:
    desk.settings = {"DESK_DEBUG": "2"}
    return await desk.play("hello")


async def external(desk: Desk) -> State:
    async with Service(503, {"rates": {"EUR": 0.9}}) as service:
        desk.settings = {"WEFT_ALLOW_HOSTS": service.place, "RATES_KEY": "canary-5f1c9"}
        variables = desk.workspace / "workflows/Desk/context_variables.json"
        text = variables.read_text().replace("https://rates.example.com", f"http://{service.place}")
        variables.write_text(text)
        state = await desk.play("hello")
        assert [request.headers["Authorization"] for request in service.seen] == [
            "Bearer canary-5f1c9"
        ] * 2
        assert service.seen[0].path_qs == "/latest?for=me"
    return state


async def ui_response(desk: Desk) -> State:
    async def answer(host: Host, run: str) -> None:
        [question] = await host.requests(scope=LOCAL, run=run)
        await host.deliver(run, Answer(question.id, {"choice": "accept"}), scope=LOCAL)
        await host.settled(run, scope=LOCAL)

    desk.clerk, desk.after = (call("confirm", question="Is it so?"), "Fine."), answer
    return await desk.play("hello")


async def timer_expired(desk: Desk) -> State:
    clock = desk.clock = ManualClock()

    async def wait(host: Host, run: str) -> None:
        await clock.advance(3599)
        assert (await host.state(run, scope=LOCAL)).variables == {"late": False}
        await clock.advance(1)

    desk.after = wait
    return await desk.play("hello")


FOUND = (call("find_order", number="7"), "Found.")
PLAYS: dict[str, Play] = {
    "static": said(),
    "environment": environment,
    "database": said(),
    "entity": said(clerk=(call("note", name="visits", value={"count": 1}), "Noted.")),
    "external": external,
    "computed": said(clerk=FOUND),
    "derived": said(clerk=(call("note", name="status", value="closed"), *FOUND)),
    "file": said(),
    "agent_text": said(clerk=("ready",)),
    "user_text": said("it is urgent"),
    "ui_response": ui_response,
    "tool_call": said(clerk=FOUND),
    "tool_response": said(clerk=FOUND),
    "handoff": said(),
    "lifecycle": said(),
    "agent_turn_count": said("hello", "and now?", helper=("So.", "So.")),
    "timer_expired": timer_expired,
    "tool_failed": said(clerk=(call("find_order", number="8"), "Sorry.")),
    "model_failed": said(clerk=(ModelError("it is down"),)),
    "function": said(clerk=("Wait, please.",), helper=("What now?",)),
    "x:NAME": said(clerk=("One moment please, dear customer.",), helper=("Hello.",)),
}


def installed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the plug-in of the page, as a distribution would be."""
    files = EXAMPLES["x:NAME"].files
    project = tomllib.loads(files["pyproject.toml"])["project"]
    home = desk.workspace / "site"
    distribution = home / "desk_triggers-1.dist-info"
    distribution.mkdir(parents=True)
    (distribution / "METADATA").write_text("Name: desk-triggers\nVersion: 1\n")
    points = [
        f"{name} = {target}" for name, target in project["entry-points"]["weft.triggers"].items()
    ]
    (distribution / "entry_points.txt").write_text("\n".join(["[weft.triggers]", *points]))
    (home / "desk_triggers.py").write_text(files["desk_triggers.py"])
    monkeypatch.syspath_prepend(str(home))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_has_the_stated_result(name, desk, monkeypatch):
    if name.startswith(CUSTOM):
        installed(desk, monkeypatch)
    desk.put(EXAMPLES[name])
    state = asyncio.run(PLAYS[name](desk))
    example = EXAMPLES[name]
    assert example.stated[0].keys() == example.definitions[0].keys()
    assert {
        variable: state.variables[variable] for variable in example.stated[0]
    } == example.stated[0]
    assert desk.model.left == (name == "model_failed")


def test_every_source_and_trigger_has_a_section():
    assert SOURCES.keys() == kinds(Source).keys()
    custom = {"x": f"{CUSTOM}NAME"}
    assert list(TRIGGERS) == [custom.get(kind, kind) for kind in kinds_in_order()]
    assert PLAYS.keys() == EXAMPLES.keys()


def kinds_in_order() -> list[str]:
    last = ["function", "x"]
    found = list(kinds(Trigger))
    return [kind for kind in found if kind not in last] + last


@pytest.mark.parametrize("name", SOURCES)
def test_section_of_a_source_names_its_fields(name):
    shown = set(re.findall(r'[`"](\w+)[`"]', SOURCES[name]))
    fields = {field.alias or key for key, field in kinds(Source)[name].model_fields.items()}
    assert fields - shown == set()


@pytest.mark.parametrize(
    "name", [trigger for trigger in TRIGGERS if not trigger.startswith(CUSTOM)]
)
def test_section_of_a_trigger_names_its_fields(name):
    shown = set(re.findall(r'[`"](\w+)[`"]', TRIGGERS[name]))
    assert kinds(Trigger)[name].model_fields.keys() - shown - {"value", "ui_hidden"} == set()


def test_entity_document_is_written(desk, capsys):
    desk.put(EXAMPLES["entity"])
    asyncio.run(PLAYS["entity"](desk))
    capsys.readouterr()
    [command] = EXAMPLES["entity"].commands
    assert main(shlex.split(command)[1:]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 1


def test_state_machine_refuses_unlisted_changes(desk):
    desk.put(EXAMPLES["derived"])
    asyncio.run(PLAYS["derived"](desk))
    told = [
        message["content"]
        for message in desk.model.requests[1].messages
        if message["role"] == "tool"
    ]
    assert told == ["error: status may not change from 'new' to 'closed'"]


def test_persistent_value_is_kept_for_the_next_run(desk):
    desk.put(EXAMPLES["derived"], 1)
    later: list[State] = []

    async def start_again(host: Host, run: str) -> None:
        second = await host.start("Desk", scope=LOCAL, message="hello")
        await host.settled(second, scope=LOCAL)
        later.append(await host.state(second, scope=LOCAL))

    desk.clerk, desk.helper, desk.after = ["Hello."] * 2, ["Bye."] * 2, start_again
    first = asyncio.run(desk.play("in italiano"))
    stated = EXAMPLES["derived"].stated[1]
    assert stated
    assert [state.variables for state in (first, *later)] == [stated, stated]


def test_helper_sees_the_value_of_a_lifecycle_trigger(desk):
    desk.put(EXAMPLES["lifecycle"])
    asyncio.run(PLAYS["lifecycle"](desk))
    clerk, helper = (str(request.messages) for request in desk.model.requests)
    assert ("intake" in clerk, "help" in helper) == (True, True)


def test_trigger_of_a_missing_plug_in_is_refused(desk):
    desk.put(EXAMPLES["x:NAME"])
    with pytest.raises(CheckFailed) as caught:
        asyncio.run(desk.play("hello"))
    assert {finding.code for finding in caught.value.findings} == {"LINK003"}


NOT_READ: dict[str, dict[str, Any]] = {
    "database": {
        "type": "database",
        "collection": "Customers",
        "search_by": "user_id",
        "field": "address",
    },
    "entity": {
        "type": "entity",
        "collection": "Customers",
        "search_by": "user_id",
        "schema": {"address": {"type": "int"}},
    },
    "external": {
        "type": "external",
        "service": "rates",
        "operation": "latest",
        "url": "http://127.0.0.1:9/latest",
    },
    "file": {"type": "file", "path": "data/none.json", "format": "json"},
}


@pytest.mark.parametrize("name", NOT_READ)
def test_unreadable_source_uses_its_default_or_fails_the_turn(name, desk):
    desk.put(EXAMPLES["database"])
    kind, default = ("dict", {"a": 1}) if name == "entity" else ("int", 1)
    desk.write({"it": {"type": kind, "source": NOT_READ[name]}}, {})
    state = asyncio.run(desk.play("hello"))
    assert state.outcome == "failed"
    assert "it could not be read: " in state.reason
    desk.write({"it": {"type": kind, "source": {**NOT_READ[name], "default": default}}}, {})
    state = asyncio.run(desk.play("hello"))
    assert (state.outcome, state.variables) == (None, {"it": default})


def test_missing_document_without_default_is_null(desk):
    desk.write({"it": {"type": "int", "source": NOT_READ["database"]}}, {})
    state = asyncio.run(desk.play("hello"))
    assert (state.outcome, state.variables) == (None, {"it": None})


@pytest.mark.parametrize("text", [None, "a lot"])
def test_run_is_refused_without_a_required_environment_variable(text, desk):
    [definitions] = EXAMPLES["environment"].definitions
    source = {"type": "environment", "env_var": "DESK_DEBUG", "required": True}
    desk.write({"debug_level": {**definitions["debug_level"], "source": source}}, {})
    desk.settings = {} if text is None else {"DESK_DEBUG": text}
    with pytest.raises(UsageError, match="DESK_DEBUG"):
        asyncio.run(desk.play("hello"))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("environment", {"ENVIRONMENT": "production", "DESK_DEBUG": "2"}),
        ("database", {"CONTEXT_INCLUDE_SCHEMA": "off"}),
    ],
)
def test_suppressed_variables_do_not_exist(name, settings, desk):
    desk.put(EXAMPLES[name])
    desk.settings = settings
    state = asyncio.run(desk.play("hello"))
    assert state.variables == {}
    [definitions] = EXAMPLES[name].definitions
    sent = str([request.messages for request in desk.model.requests])
    assert [definition for definition in definitions if definition in sent] == []


def test_failing_function_keeps_a_triggered_value_and_fails_a_computed_one(desk):
    desk.put(EXAMPLES["function"])
    (desk.workspace / "workflows/Desk/tools/tone.py").write_text("def tone():\n    return 1 / 0\n")
    state = asyncio.run(desk.play("hello"))
    assert (state.outcome, state.variables) == (None, {"polite": True})
    desk.put(EXAMPLES["computed"])
    (desk.workspace / "workflows/Desk/tools/prices.py").write_text(
        "def discount():\n    return 1 / 0\n"
    )
    state = asyncio.run(desk.play("hello"))
    assert state.outcome == "failed"
    assert "ZeroDivisionError" in state.reason


def test_every_right_is_on_the_page():
    shown = set(re.findall(r'`"?(\w+)', chapter(CONTEXT, "Rights")))
    assert Variable.model_fields.keys() - shown <= {"type", "source", "description"}


def test_every_member_of_the_context_is_on_the_page():
    own = {name for name in vars(Context) if not name.startswith("_")}
    hidden = {"catch_up", "contains", "data", "finish", "restart", "setdefault"}
    text = chapter(CONTEXT, "The context object")
    assert {name for name in own - hidden if not re.search(rf"\b{name}\b", text)} == set()


def test_tool_refreshes_asks_and_reports_progress(desk):
    example = read_example(chapter(CONTEXT, "The context object"))
    desk.put(example)
    desk.clerk = (call("judge_price"), {"fair": True}, "It is.")
    told: list[Any] = []

    async def look(host: Host, run: str) -> None:
        events = [event.data async for event in host.events(run, scope=LOCAL)]
        told.extend(event.progress for event in events if isinstance(event, ToolReturned))

    desk.after = look
    state = asyncio.run(desk.play("hello"))
    assert state.variables == example.stated[0]
    assert told == [(0.5, "asking")]
    assert "Is 40 fair for a kettle?" in str(desk.model.requests[1].messages)


def test_the_commands_about_documents_work(desk):
    (desk.workspace / "more.jsonl").write_text('{"_id": "sam"}\n')
    commands = read_example(chapter(CONTEXT, "Documents")).commands
    assert len(commands) == 6
    assert [main(shlex.split(line, comments=True)[1:]) for line in commands] == [0] * 6


def test_other_pages_lead_here():
    for page in ("README.md", "docs/packages.md", "docs/running.md"):
        assert "context.md)" in (DOCS.parent / page).read_text(encoding="utf-8"), page
