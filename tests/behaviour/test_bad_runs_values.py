"""Values nobody should send: refused with a reason, or taken whole; the run can be read after."""

import re
import time

import pytest

from behaviour.bad_run_play import ADA, finished, open_host, spec
from weft.engine.events import (
    ModelFailed,
    OutputRefused,
    ToolFailed,
    Usage,
    VariableSet,
)
from weft.errors import AccessDenied, UsageError, WeftError
from weft.ports.model import ModelReply
from weft.runtime.signals import Answer, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import FunctionModel, call

CODE = b'''
from weft import use_ui_tool


def take(value: dict) -> str:
    """Take anything."""
    return "taken"


async def ask() -> str:
    """Ask for anything."""
    return str(len(str(await use_ui_tool("ask"))))
'''
VARIABLES = {"anything": "dict", "number": "float", "name": "str"}
TO_USER = [{"source_agent": "Clerk", "target_agent": "user"}]
SPEC = spec("take", ui=("ask",), variables=VARIABLES)
CHAT = spec("take", ui=("ask",), variables=VARIABLES, handoffs=TO_USER)


def nested(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def done(_request):
    return "Done."


def calling(tool, **arguments):
    def reply(request):
        return "Done." if request.messages[-1]["role"] == "tool" else call(tool, **arguments)

    return FunctionModel(reply)


async def works(host):
    """Check that the next run works."""
    host._models._model = FunctionModel(done)
    told = await finished(host, await host.start("Desk", scope=ADA, message="next"))
    assert told.row.status in ("ended", "waiting")
    assert told.row.outcome in ("completed", None)


BAD = {
    "300 levels": nested(300),
    "200 levels": nested(200),
    "no number": {"a": float("nan")},
    "endless": {"a": float("-inf")},
    "half a letter": {"a": "\ud800"},
    "half a letter as key": {"\udfff": 1},
}


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_answer_is_refused_and_the_question_stays_open(tmp_path, bad):
    path = tmp_path / "journal.db"
    async with await open_host(path, SPEC, calling("ask"), CODE) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        before = await finished(host, run)
        (question,) = before.state.requests
        with pytest.raises(UsageError, match="the answer is a value of type dict that is no"):
            await host.deliver(run, Answer(question, BAD[bad]), scope=ADA)
        assert await finished(host, run) == before
        await host.deliver(run, Answer(question, {"fine": 1}), scope=ADA)
        assert (await finished(host, run)).row.outcome == "completed"
        await works(host)


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_start_value_is_refused_and_no_run_begins(tmp_path, bad):
    async with await open_host(tmp_path / "j.db", SPEC, FunctionModel(done), CODE) as host:
        with pytest.raises(
            UsageError, match="anything cannot be a value of type dict that is not JSON"
        ):
            await host.start("Desk", scope=ADA, values={"anything": BAD[bad]}, message="hi")
        assert await host.runs(scope=ADA) == []
        await works(host)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("number", float("nan"), "number cannot be .* not finite"),
        ("number", float("inf"), "number cannot be .* not finite"),
        ("number", "many", "number: "),
        ("name", "\ud800", "name cannot be .* not valid Unicode"),
        ("nothing", 1, "there is no variable nothing"),
    ],
)
async def test_a_start_value_that_does_not_fit_is_refused(tmp_path, name, value, said):
    async with await open_host(tmp_path / "j.db", SPEC, FunctionModel(done), CODE) as host:
        with pytest.raises(UsageError, match=said):
            await host.start("Desk", scope=ADA, values={name: value}, message="hi")
        assert await host.runs(scope=ADA) == []
        await works(host)


async def test_message_that_is_not_text_is_refused(tmp_path):
    async with await open_host(tmp_path / "j.db", CHAT, FunctionModel(done), CODE) as host:
        with pytest.raises(UsageError, match="not valid Unicode"):
            await host.start("Desk", scope=ADA, message="\ud800")
        assert await host.runs(scope=ADA) == []
        run = await host.start("Desk", scope=ADA, message="hi")
        before = await finished(host, run)
        with pytest.raises(UsageError, match="not valid Unicode"):
            await host.deliver(run, UserMessage("\ud800"), scope=ADA)
        assert await finished(host, run) == before
        await works(host)


@pytest.mark.parametrize("text", ["", " \n\t"])
async def test_a_message_that_says_nothing_is_refused(tmp_path, text):
    async with await open_host(tmp_path / "j.db", CHAT, FunctionModel(done), CODE) as host:
        with pytest.raises(UsageError, match="the message is empty") as caught:
            await host.start("Desk", scope=ADA, message=text)
        assert "leave it out" in caught.value.hint
        assert await host.runs(scope=ADA) == []
        run = await host.start("Desk", scope=ADA, message="hi")
        before = await finished(host, run)
        [asked] = await host.requests(scope=ADA, run=run)
        for signal in (UserMessage(text), Answer(asked.id, text)):
            with pytest.raises(UsageError, match="the message is empty") as caught:
                await host.deliver(run, signal, scope=ADA)
            assert "the run waits" in caught.value.hint
        assert await finished(host, run) == before
        await works(host)


async def test_a_message_of_a_megabyte_is_taken_whole(tmp_path):
    text = "All of it. " * 100_000
    async with await open_host(tmp_path / "j.db", CHAT, FunctionModel(done), CODE) as host:
        run = await host.start("Desk", scope=ADA, message=text)
        await finished(host, run)
        await host.deliver(run, UserMessage(text), scope=ADA)
        told = await finished(host, run)
        await works(host)
    assert [entry.value for entry in told.answered] == [text]
    assert [message.text for message in told.state.messages if message.role == "user"] == [
        text,
        text,
    ]
    assert len(told.row.preview) <= 120


@pytest.mark.parametrize("levels", [150, 190, 197, 200, 240, 255, 300, 1200])
async def test_arguments_nested_without_end_leave_a_run_that_can_be_read(tmp_path, levels):
    path = tmp_path / "journal.db"
    async with await open_host(path, SPEC, calling("take", value=nested(levels)), CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        await works(host)
    assert told.row.status == "ended"
    if levels > 190:
        explained = [
            event.data for event in told.events if isinstance(event.data, ModelFailed | ToolFailed)
        ]
        assert "nested too deeply" in explained[0].error


@pytest.mark.parametrize(
    "reply", ["half a letter: \ud800", ModelReply("whole", finish_reason="half a word: \ud800")]
)
async def test_reply_that_cannot_be_stored_is_a_model_error(tmp_path, reply):
    model = FunctionModel(lambda _: reply)
    async with await open_host(tmp_path / "j.db", SPEC, model, CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        await works(host)
    assert told.row.outcome == "failed"
    assert "the reply cannot be stored" in told.only(ModelFailed).error


PLAN = {
    "models": [{"name": "Plan", "fields": {"value": {"type": "dict"}}}],
    "registry": [{"agent": "Clerk", "model": "Plan"}],
}
AUTO = {"agents": [{"agent_name": "Clerk", "auto_tool_mode": True}]}


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("levels", [190, 197, 200, 255, 300, 900, 100_000])
async def test_output_nested_without_end_leaves_a_run_that_can_be_read(tmp_path, levels, auto):
    text = '{"value": ' + '{"a": ' * levels + "1" + "}" * levels + "}"
    tool = {"agent": "Clerk", "file": "work.py", "function": "take", "tool_type": "Agent_Tool"}
    rest = {**PLAN, "tools": [{**tool, "auto_invoke": True}], **AUTO} if auto else PLAN
    model = FunctionModel(lambda _: text)
    async with await open_host(tmp_path / "j.db", spec(**rest), model, CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
    assert told.row.status == "ended"
    if levels == 100_000:
        faults = [
            event.data.error for event in told.events if isinstance(event.data, OutputRefused)
        ]
        assert len(faults) == 3
        assert told.row.outcome == "failed"


@pytest.mark.parametrize("pattern", [r"order\s+\w+!", r".*a.*b", r"(x+x+)+y", r"^(\w|\s)*$!"])
async def test_long_text_against_a_regex_takes_bounded_time(tmp_path, pattern):
    agent = {"type": "agent_text", "agent": "Clerk", "match": {"regex": pattern}}
    user = {"type": "user_text", "match": {"regex": pattern}}
    source = {"type": "derived", "default": False, "triggers": [agent, user]}
    variables = {"found": {"type": "bool", "source": source}}
    declared = WorkflowSpec.model_validate({**spec().model_dump(), "variables": variables})
    model = FunctionModel(lambda _: "x" * 100_000)
    async with await open_host(tmp_path / "j.db", declared, model) as host:
        begun = time.monotonic()
        run = await host.start("Desk", scope=ADA, message="x" * 100_000)
        (told, seconds) = await finished(host, run), time.monotonic() - begun
    assert told.row.outcome == "completed"
    assert not [event for event in told.events if isinstance(event.data, VariableSet)]
    assert seconds < 5


async def test_a_condition_without_an_answer_ends_the_run_explained(tmp_path):
    rules = [{"source_agent": "Clerk", "target_agent": "terminate", "condition": "mixed > 3"}]
    declared = spec(variables={"mixed": "int | str"}, handoffs=rules)
    async with await open_host(tmp_path / "j.db", declared, FunctionModel(done)) as host:
        run = await host.start("Desk", scope=ADA, values={"mixed": "a"}, message="hi")
        told = await finished(host, run)
    assert told.row.outcome == "failed"
    assert "'mixed > 3' cannot be answered for a text and a number" in told.row.reason


@pytest.mark.parametrize(
    "reply",
    [
        call("\ud800"),
        call("take", **{"\ud800": 1}),
        ModelReply("x", usage=Usage(10**30, 1)),
        ModelReply("x", usage=Usage(1, 1, None, float("nan"))),
        ModelReply(None),
    ],
    ids=["name of a tool", "name of an argument", "too many tokens", "no price", "no text"],
)
async def test_a_reply_no_journal_can_hold_ends_the_run_explained(tmp_path, reply):
    model = FunctionModel(lambda _: reply)
    async with await open_host(tmp_path / "j.db", SPEC, model, CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        await works(host)
        assert await host.recover() == []
    assert told.row.outcome == "failed"
    assert re.match(
        "the result of agent:Clerk could not be stored: |the model of Clerk failed: ",
        told.row.reason,
    )


async def test_invalid_run_id_is_refused(tmp_path):
    async with await open_host(tmp_path / "j.db", SPEC, FunctionModel(done), CODE) as host:
        with pytest.raises(WeftError):
            await host.start("Desk", scope=ADA, message="hi", run="\ud800")
        with pytest.raises(AccessDenied, match="there is no run"):
            await host.run("\ud800", scope=ADA)
        odd = await host.start("Desk", scope=ADA, message="hi", run="a\x00/../b \u00e9")
        assert (await finished(host, odd)).row.run == odd
        await works(host)
