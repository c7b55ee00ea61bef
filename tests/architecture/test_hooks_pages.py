"""The pages about hooks, handoffs, tool servers, questions and starts: complete, and they work."""

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from support.page_play import BASE, Desk, chapter, open_desk, read_example, read_pages, sections
from support.retrieval_play import local_model
from weft import Answer, Scope
from weft.app.folders import LOCAL
from weft.cli.app import main
from weft.engine.events import ToolCalled
from weft.errors import UsageError
from weft.runtime.host import Host
from weft.spec.orchestrator import Start
from weft.spec.tools import Hook, HookType, LifecycleTool, McpServer
from weft.spec.workflow import WorkflowSpec
from weft.testing import call

PAGE = read_pages("hooks.md", "handoffs.md", "tools.md", "running.md")
HOOKS = sections(chapter(PAGE, "Lifecycle tools and hooks"))
JUDGED = sections(chapter(PAGE, "Handoffs that a model decides"))
SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return open_desk(tmp_path, monkeypatch)


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_functions_are_called_in_the_order_of_the_page(desk):
    points = [member for member in get_args(HookType) if member != "on_fail"]
    listed = [
        match
        for match in re.findall(r"`(\w+)`", chapter(PAGE, "Turn lifecycle"))
        if match in points
    ]
    code = "def watch(**given):\n    pass\n"
    desk.write({}, {"workflows/Desk/hooks/shop.py": code, **ends()})
    hooks = [Hook(hook_type=point, file="shop.py", function="watch") for point in sorted(points)]
    desk.changed = lambda spec: spec.model_copy(update={"hooks": tuple(hooks)})
    called: list[str] = []

    async def look(host: Host, run: str) -> None:
        events = [event async for event in host.events(run, scope=LOCAL) if event.turn in (0, 1)]
        called.extend(event.data.hook for event in events if isinstance(event.data, ToolCalled))

    desk.after = look
    state = asyncio.run(desk.play("hello"))
    assert state.outcome == "completed"
    assert called == list(dict.fromkeys(listed))


def ends() -> dict[str, str]:
    """Return the rules of a run that ends by itself."""
    name = "workflows/Desk/handoffs.json"
    return {name: BASE[name].replace('"user"', '"terminate"')}


def test_lifecycle_tools_and_hooks_work(desk):
    example = read_example(HOOKS[""])
    desk.put(example)
    desk.clerk, desk.helper = ("Card 4242424242?",), ("Fine.",)
    state = asyncio.run(desk.play("hello"))
    assert state.variables == example.stated[0]
    assert [message.text for message in state.messages] == ["hello", "Card ******?", "Fine."]
    helper = desk.model.requests[1].messages
    assert helper[0]["content"].endswith("We close at five.")
    assert "We close" not in desk.model.requests[0].messages[0]["content"]
    assert [message["content"] for message in helper[1:]][-1].endswith("Card ******?")


@pytest.mark.parametrize(("policy", "outcome"), [("log", None), ("stop", "failed")])
def test_failing_hook_is_skipped_or_fails_the_turn(policy, outcome, desk):
    example = read_example(HOOKS[""])
    hooks = example.files["workflows/Desk/hooks.json"].replace('"stop"', f'"{policy}"')
    code = "def tell_hours(agent, messages):\n    pass\n\n\n"
    code += "def hide_numbers(sender, message, recipient, silent):\n    return 7\n"
    changed = {"workflows/Desk/hooks.json": hooks, "workflows/Desk/hooks/shop.py": code}
    desk.write(example.definitions[0], {**example.files, **changed})
    state = asyncio.run(desk.play("hello"))
    assert state.outcome == outcome
    assert ("hide_numbers (process_message_before_send) failed" in state.reason) == bool(outcome)


@pytest.mark.parametrize(("policy", "outcome"), [("tell", None), ("fail", "failed")])
def test_failing_tool_is_reported_or_fails_the_turn(policy, outcome, desk):
    tools = json.loads(BASE["workflows/Desk/tools.json"])
    tools["tools"][0]["on_error"] = policy
    desk.write({}, {"workflows/Desk/tools.json": json.dumps(tools)})
    desk.clerk = (call("find_order", number="8"), "Sorry.")
    assert asyncio.run(desk.play("hello")).outcome == outcome


def test_model_decides_a_condition(desk):
    example = read_example(JUDGED[""])
    desk.put(example)
    [said] = re.findall(r"The model decides `([^`]+)`", JUDGED[""])
    desk.clerk = ("Well.", json.loads(said))
    state = asyncio.run(desk.play("HELLO!"))
    assert state.variables == example.stated[0]
    assert "The customer is angry." in str(desk.model.requests[1].messages)


def test_unreadable_judgement_fails_the_run(desk):
    desk.put(read_example(JUDGED[""]))
    desk.clerk = ("Well.", "perhaps")
    state = asyncio.run(desk.play("hello"))
    assert (state.outcome, "could not be judged" in state.reason) == ("failed", True)


@pytest.mark.parametrize("number", [0, 1])
def test_nearest_description_decides_the_handoff(desk, number):
    text = JUDGED["Handoffs to the nearest description"]
    example = read_example(text)
    desk.put(example)
    desk.settings = local_model()
    messages = re.findall(r'(?:says|after)\s+"([^"]+)"', text)
    state = asyncio.run(desk.play(messages[number].replace("\n", " ")))
    assert len(messages) == 2
    assert state.variables == {"helped": number == 0}
    assert example.stated[0] == {"helped": True}


def test_model_hands_off_by_a_tool(desk):
    example = read_example(JUDGED["Handoff tools"])
    desk.put(example)
    desk.clerk = (call("hand_off_to_Helper"),)
    state = asyncio.run(desk.play("hello"))
    assert state.variables == example.stated[0]
    offered = {tool.name: tool.description for tool in desk.model.requests[0].tools}
    assert "Knows all about returns." in offered["hand_off_to_Helper"]
    assert "hand_off_to_user" in offered


def with_servers(desk: Desk) -> None:
    """Let the package have the servers of the page, started as the program of the tests."""
    [text] = read_example(chapter(PAGE, "Tool servers")).files.values()
    servers = TypeAdapter(tuple[McpServer, ...]).validate_python(json.loads(text)["mcp_servers"])
    command = (sys.executable, str(SERVER))
    started = tuple(server.model_copy(update={"command": command}) for server in servers)

    def changed(spec: WorkflowSpec) -> WorkflowSpec:
        return spec.model_copy(update={"mcp_servers": started})

    desk.write({}, {})
    desk.changed = changed
    desk.settings = {"CALC_KEY": "canary-7f3a9c"}


def test_tools_of_servers_are_called_after_approval(desk):
    with_servers(desk)
    asked: list[Any] = []

    async def approve(host: Host, run: str) -> None:
        [question] = await host.requests(scope=LOCAL, run=run)
        asked.append((question.tool, question.payload))
        await host.deliver(run, Answer(question.id, {"approved": True}), scope=LOCAL)
        await host.settled(run, scope=LOCAL)

    desk.clerk = (call("calc_add", a=2, b=3), call("calc_echo", text_="hello"), "Done.")
    desk.after = approve
    state = asyncio.run(desk.play("hello"))
    assert [message.text for message in state.messages if message.role == "tool"] == [
        '{"sum": 5}',
        "hello",
    ]
    shown = {"tool": "calc_echo", "arguments": {"text_": "hello"}}
    assert asked == [("approve_tool_call:calc", shown)]
    offered = {tool.name for tool in desk.model.requests[0].tools}
    assert {"calc_add", "calc_echo"} <= offered
    assert "calc_add" not in {tool.name for tool in desk.model.requests[-1].tools}


def test_unreachable_tool_server_fails_the_run(desk):
    with_servers(desk)
    desk.settings = {}
    state = asyncio.run(desk.play("hello"))
    assert state.outcome == "failed"
    assert (
        "mcp:calc could not be read: the environment variable CALC_KEY is not set" in state.reason
    )


def test_only_the_addressee_can_answer(desk):
    example = read_example(sections(chapter(PAGE, "Questions to people"))["Who is asked"])
    desk.put(example)
    manager = Scope(LOCAL.app, "eve", roles=("manager",))

    async def answer(host: Host, run: str) -> None:
        assert await host.requests(scope=LOCAL) == []
        [question] = await host.requests(scope=manager)
        given = Answer(question.id, {"choice": "accept"})
        with pytest.raises(UsageError, match="is for role:manager"):
            await host.deliver(run, given, scope=LOCAL)
        await host.deliver(run, given, scope=manager)
        await host.settled(run, scope=LOCAL)

    desk.clerk, desk.after = (call("confirm", question="May I?"), "Done."), answer
    assert asyncio.run(desk.play("hello")).variables == example.stated[0]


def test_workflow_can_be_started_by_hand(desk, capsys):
    example = read_example(chapter(PAGE, "Starts"))
    desk.put(example)
    [command] = example.commands
    assert main(shlex.split(command)[1:]) == 0
    capsys.readouterr()
    assert main(["inspect", "last", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["inspection"]
    assert {
        variable["name"]: variable["value"] for variable in shown["variables"]
    } == example.stated[0]
    assert main(shlex.split(command.replace("--input count=2", ""))[1:]) == 2
    assert "does not fit" in capsys.readouterr().err


def test_every_hook_point_server_field_and_start_is_on_the_page():
    assert set(get_args(HookType)) <= quoted(HOOKS[""])
    fields = {name for part in (Hook, LifecycleTool) for name in part.model_fields}
    shown = quoted(PAGE) | set(re.findall(r'"(\w+)"', PAGE))
    assert fields - shown <= {"description", "integration"}
    assert {name.rstrip("_") for name in McpServer.model_fields} <= quoted(
        chapter(PAGE, "Tool servers")
    )
    starts = {member.model_fields["type"].default for member in get_args(get_args(Start)[0])}
    assert starts <= quoted(chapter(PAGE, "Starts"))
