"""Secrets that people type into forms: for the tool that asked, and kept nowhere."""

import asyncio
import logging
import tempfile
from pathlib import Path

from support.boundary_play import declared, derived, in_turns, of, rest
from support.run_play import ADA
from weft.adapters.sql import SqliteStore
from weft.engine.events import RequestAnswered, RequestOpened, RunEnded, ToolReturned
from weft.engine.events.codec import encode
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call

CANARY = "canary-7f3a9c"
CODE = {
    "tools/login.py": b'''
from weft import use_ui_tool


async def login(context_variables) -> dict:
    """Ask for an account."""
    context_variables.progress(0.1, "asking")
    answer = await use_ui_tool("login", {"for": "the bank"})
    secret = answer["account"]["pin"]
    context_variables.set("note", f"pin {secret}")
    context_variables.progress(0.9, f"with {secret}")
    again = await use_ui_tool("login", {"for": f"the bank, not {secret}"})
    return {"length": len(secret), "said": secret, "name": answer["name"], "again": again["name"]}
'''
}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "account": {
            "type": "object",
            "properties": {
                "pin": {"type": "string", "writeOnly": True},
                "word": {"type": "string", "format": "password"},
            },
        },
    },
    "required": ["name"],
}
TOOL = {
    "tool_type": "UI_Tool",
    "agent": "A",
    "file": "login.py",
    "function": "login",
    "ui": {"component": "Login", "mode": "inline"},
    "response_schema": SCHEMA,
}
TRIGGER = {"type": "ui_response", "tool": "login", "response_key": "account.pin"}
VARIABLES = {"note": derived("str", ""), "typed": derived("str", "", TRIGGER)}
FULL = {"name": "ada", "account": {"pin": CANARY, "word": CANARY + "2"}}


def asking():
    return declared(tools=[TOOL], variables=VARIABLES, exposure={"A": ["note", "typed"]})


async def answer(host, run, value):
    await rest(host, run)
    (asked,) = await host.requests(scope=ADA, run=run)
    await host.deliver(run, Answer(asked.id, value), scope=ADA)
    await rest(host, run)
    return asked


async def to_the_end(host, run):
    await answer(host, run, FULL)
    await answer(host, run, {"name": "bob"})


def test_secret_field_reaches_only_the_tool(caplog):
    model = ScriptedModel([call("login"), "done"])
    heard = []

    async def scene(host, run):
        listening = asyncio.create_task(follow(host, run))
        await to_the_end(host, run)
        await listening

    async def follow(host, run):
        heard.extend([event async for event in host.events(run, scope=ADA, follow=True)])

    with caplog.at_level(logging.DEBUG):
        played = asyncio.run(in_turns(asking(), [scene], [model], code=CODE))
    returned = played.at(ToolReturned).data
    said = {"length": len(CANARY), "said": "(secret)", "name": "ada", "again": "bob"}
    assert returned.value == said
    assert returned.progress == (0.9, "with (secret)")
    answered = of(played, RequestAnswered)[1]
    assert answered.value == {"name": "ada", "account": {"pin": "(secret)", "word": "(secret)"}}
    assert of(played, RequestOpened)[2].payload == {"for": "the bank, not (secret)"}
    for place in (str(heard), b"".join(encode(event.data) for event in played.events).decode()):
        assert CANARY not in place
    assert CANARY not in str([request.messages for request in model.requests])
    assert CANARY not in caplog.text


def test_it_is_in_no_file():
    async def whole(path):
        model = ScriptedModel([call("login"), "done"])
        journal = await SqliteStore.open(path)
        async with host_for(asking(), model, code=CODE, store=journal) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await to_the_end(host, run)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(asyncio.wait_for(whole(Path(folder) / "journal.db"), 20))
        files = [file.read_bytes() for file in Path(folder).iterdir()]
    assert files
    assert not any(CANARY.encode() in file for file in files)


def test_only_secret_answers_are_asked_again_after_a_restart():
    model = ScriptedModel([call("login"), "done"])

    async def first(host, run):
        asked = await answer(host, run, FULL)
        assert asked.payload == {"for": "the bank"}

    async def second(host, run):
        asked = await answer(host, run, {"name": "eve"})
        assert asked.payload == {"for": "the bank, not (secret)"}, "its question was open"
        asked = await answer(host, run, FULL)
        assert asked.payload == {"for": "the bank"}, "its first secret is gone with the process"

    played = asyncio.run(in_turns(asking(), [first, second], [model, model], code=CODE))
    assert played.at(ToolReturned).data.value["length"] == len(CANARY)
    assert played.at(ToolReturned).data.value["again"] == "eve", "nobody is asked that twice"
    assert played.at(RunEnded).data.outcome == "completed"
    assert CANARY not in str(played.events)


def test_an_answer_without_its_secret_fields_is_an_answer():
    model = ScriptedModel([call("login"), "done"])

    async def scene(host, run):
        await answer(host, run, {"name": "ada", "account": {}})

    played = asyncio.run(in_turns(asking(), [scene], [model], code=CODE))
    assert of(played, RequestAnswered)[1].value == {"name": "ada", "account": {}}


def test_secret_typed_for_one_call_is_unknown_to_the_next():
    code = {
        "tools/login.py": b'''
from weft import use_ui_tool


async def login() -> str:
    """Ask for a pin."""
    return str(len((await use_ui_tool("login"))["account"]["pin"]))
'''
    }
    model = ScriptedModel([call("login"), call("login"), "done"])

    async def scene(host, run):
        await answer(host, run, {"name": "a", "account": {"pin": "123456"}})
        await answer(host, run, {"name": "a", "account": {"pin": "1234567"}})

    played = asyncio.run(in_turns(asking(), [scene], [model], code=code))
    assert [event.value for event in of(played, ToolReturned)] == ["6", "7"]
