"""Tools that misbehave: the run says what happened and goes on, and so does the next one."""

import asyncio
import re
import time

import pytest

from behaviour.bad_run_play import ADA, finished, open_host, play, spec
from weft.engine.events import ToolFailed, ToolReturned, VariableSet
from weft.inspect.run import inspect_run
from weft.runtime.signals import Answer
from weft.testing.models import FunctionModel, call

CODE = b'''
import asyncio
import time

from weft import Ask, Refuse, RetryModel, tool


def well() -> str:
    """Behave."""
    return "fine"


def raises() -> str:
    """Fail."""
    raise ValueError("no such order")


def raises_unreadable() -> str:
    """Fail with something that cannot be told."""

    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    raise Odd


def no_json() -> object:
    """Return what is no JSON."""
    return object()


def not_a_number() -> float:
    """Return a number that is none."""
    return float("nan")


def half_a_letter() -> str:
    """Return text that cannot be written."""
    return "\\ud800"


def circle() -> list:
    """Return what contains itself."""
    found: list = []
    found.append(found)
    return found


def deep() -> list:
    """Return what is nested without end."""
    found: list = []
    for _ in range(300):
        found = [found]
    return found


def five_megabytes() -> str:
    """Return a file."""
    return "x" * 5_000_000


@tool(timeout=0.2)
async def hangs() -> str:
    """Never come back."""
    await asyncio.Event().wait()


@tool(timeout=0.2)
def hangs_in_thread() -> str:
    """Come back too late."""
    time.sleep(1)


@tool(timeout=0.2)
async def ignores_cancellation() -> str:
    """Never come back, whatever is said."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


def leaves() -> str:
    """End the process."""
    raise SystemExit(3)


async def leaves_loop() -> str:
    """End the process, on the loop."""
    raise SystemExit(3)


async def cancels_itself() -> str:
    """Say it was cancelled."""
    raise asyncio.CancelledError


def cancelled_in_thread() -> str:
    """Say it was cancelled, away from the loop."""
    raise asyncio.CancelledError


class Panic(BaseException):
    """What libraries written in other languages raise."""


def panics() -> str:
    """Fail in a way nobody expects."""
    raise Panic("out of bounds")


async def panics_on_loop() -> str:
    """Fail in a way nobody expects, on the loop."""
    raise Panic("out of bounds")


def interrupts() -> str:
    """Pretend that somebody pressed a key."""
    raise KeyboardInterrupt


def sets_undeclared(context_variables) -> str:
    """Set what there is not."""
    context_variables.set("nothing", 1)
    return "set"


def sets_wrong_type(context_variables) -> str:
    """Set a number to text."""
    context_variables.set("count", "many")
    return "set"


@tool(effect="read", retries=2)
def counts_at_third(context_variables) -> int:
    """Count, but fail twice."""
    attempts.append(1)
    context_variables.set("count", (context_variables.get("count") or 0) + 1)
    if len(attempts) < 3:
        raise ValueError("not yet")
    return context_variables.get("count")


attempts: list[int] = []


def counts_after_answer(context_variables) -> int:
    """Count, but ask first."""
    context_variables.set("count", (context_variables.get("count") or 0) + 1)
    if not context_variables.answers:
        raise Ask("may I?")
    return context_variables.get("count")


def sets_then_fails(context_variables) -> str:
    """Set something, then fail."""
    context_variables.set("count", 3)
    raise ValueError("after all")


def sets_then_asks_again(context_variables) -> str:
    """Set something, then want other arguments."""
    context_variables.set("count", 3)
    raise RetryModel("say more")


@tool(timeout=0.05)
async def sets_then_hangs(context_variables) -> str:
    """Set something, then take too long."""
    context_variables.set("count", 3)
    await asyncio.sleep(60)


def sets_then_asks_wrongly(context_variables) -> str:
    """Set something, then ask what cannot be asked."""
    context_variables.set("count", 3)
    raise Ask("may I?", timeout=-1)


def sets_then_declines(context_variables) -> str:
    """Set something, then decline."""
    context_variables.set("count", 3)
    raise Refuse("not today")
'''

#: By tool: what the agent is told, and how the failure is recorded.
TOLD = {
    "raises": ("raises failed: ValueError: no such order", "error"),
    "raises_unreadable": ("raises_unreadable failed: Odd: its message cannot be read", "error"),
    "no_json": ("no_json returned a value of type object that is not JSON", "error"),
    "not_a_number": ("it holds a number that is not finite", "error"),
    "half_a_letter": ("it holds text that is not valid Unicode", "error"),
    "circle": ("it contains itself", "error"),
    "deep": ("it is nested too deeply", "error"),
    "five_megabytes": ("it has 5,000,002 bytes, and 4,194,304 are the limit", "error"),
    "hangs": ("hangs took longer than 0.2 seconds and was abandoned", "timeout"),
    "hangs_in_thread": ("hangs_in_thread took longer than 0.2 seconds", "timeout"),
    "ignores_cancellation": ("ignores_cancellation took longer than 0.2 seconds", "timeout"),
    "leaves": ("leaves tried to end the process, which a tool must not do", "error"),
    "leaves_loop": ("leaves_loop tried to end the process, which a tool must not do", "error"),
    "cancels_itself": ("cancels_itself cancelled itself and gave no result", "error"),
    "cancelled_in_thread": ("cancelled_in_thread cancelled itself and gave no result", "error"),
    "panics": ("panics failed: Panic: out of bounds", "error"),
    "panics_on_loop": ("panics_on_loop failed: Panic: out of bounds", "error"),
    "interrupts": ("interrupts tried to end the process", "error"),
    "sets_undeclared": ("there is no variable nothing", "error"),
    "sets_wrong_type": ("count: expected int", "error"),
    "sets_then_fails": ("sets_then_fails failed: ValueError: after all", "error"),
    "sets_then_asks_again": ("say more", "retry"),
    "sets_then_hangs": ("sets_then_hangs took longer than 0.05 seconds", "timeout"),
    "sets_then_asks_wrongly": ("asked an invalid question", "error"),
    "sets_then_declines": ("not today", "refused"),
}
#: The place that an exception adds to what is told.
PLACED = re.compile(r" at tools/work\.py:\d+(?=:|$)")
SPEC = spec("well", "counts_at_third", "counts_after_answer", *TOLD)


def calling(tool, **arguments):
    """A model that calls a tool and then says what it was told."""

    def reply(request):
        last = request.messages[-1]
        return last["content"] if last["role"] == "tool" else call(tool, **arguments)

    return FunctionModel(reply)


@pytest.mark.parametrize("tool", TOLD)
async def test_misbehaving_tool_is_reported_to_its_agent_and_recorded(tmp_path, tool):
    async with await open_host(tmp_path / "journal.db", SPEC, calling(tool), CODE) as host:
        bad = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        host._models._model = calling("well")
        good = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
    said, kind = TOLD[tool]
    failed = bad.only(ToolFailed)
    assert said in PLACED.sub("", failed.error)
    assert failed.kind == kind
    assert failed.error in [message.text for message in bad.state.messages][-1]
    assert (bad.row.status, bad.row.outcome) == ("ended", "completed")
    assert good.only(ToolReturned).value == "fine"
    assert good.row.outcome == "completed"


@pytest.mark.parametrize("tool", ["raises", "panics_on_loop"])
async def test_where_a_tool_failed_is_kept_and_shown(tmp_path, tool):
    async with await open_host(tmp_path / "journal.db", SPEC, calling(tool), CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
        workflow = await host.workflow(told.row.run, scope=ADA)
    shown = inspect_run(workflow, told.row.run, told.events)
    lines = CODE.decode().splitlines()
    # The line after its docstring, counted from 1.
    raising = next(at for at, line in enumerate(lines) if f"def {tool}()" in line) + 3
    assert f" at tools/work.py:{raising}: " in told.only(ToolFailed).error
    (failed,) = shown.turns[0].tools
    assert failed.error == told.only(ToolFailed).error


@pytest.mark.parametrize(
    ("tool", "count"),
    [
        ("sets_then_fails", None),
        ("sets_then_asks_again", None),
        ("sets_then_hangs", None),
        ("sets_then_asks_wrongly", None),
        ("sets_then_declines", 3),
    ],
)
async def test_declined_call_keeps_its_values_and_failed_call_does_not(tmp_path, tool, count):
    async with await open_host(tmp_path / "j.db", SPEC, calling(tool), CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
    values = [event.data.value for event in told.events if isinstance(event.data, VariableSet)]
    assert values == ([] if count is None else [count])
    assert told.state.variables["count"] == count


async def test_refused_value_sets_nothing(tmp_path):
    model = calling("sets_wrong_type")
    async with await open_host(tmp_path / "journal.db", SPEC, model, CODE) as host:
        told = await finished(host, await host.start("Desk", scope=ADA, message="hi"))
    assert told.state.variables["count"] is None
    assert not [event for event in told.events if isinstance(event.data, VariableSet)]


async def test_hanging_tools_block_no_other_calls(tmp_path):
    def reply(request):
        if request.messages[-1]["role"] == "tool":
            return "done"
        return call(request.messages[-1]["content"])

    model = FunctionModel(reply)
    async with await open_host(tmp_path / "journal.db", SPEC, model, CODE) as host:
        slow = [await host.start("Desk", scope=ADA, message="hangs") for _ in range(5)]
        begun = time.monotonic()
        quick = [await host.start("Desk", scope=ADA, message="well") for _ in range(20)]
        for run in quick:
            assert (await host.settled(run, scope=ADA)).outcome == "completed"
        taken = time.monotonic() - begun
        for run in slow:
            assert (await host.settled(run, scope=ADA)).outcome == "completed"
        await asyncio.sleep(0)
        assert not host._worker
        assert taken < 5


@pytest.mark.parametrize("tool", ["counts_at_third", "counts_after_answer"])
def test_a_call_that_is_made_again_starts_from_what_was_before_it(tmp_path, tool):
    async def scenario():
        async with await open_host(tmp_path / "j.db", SPEC, calling(tool), CODE) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            for question in await asked(host, run):
                await host.deliver(run, Answer(question, "yes"), scope=ADA)
            return await finished(host, run)

    async def asked(host, run):
        return (await finished(host, run)).state.requests

    told = play(scenario)
    assert told.only(VariableSet).value == 1
    assert told.only(ToolReturned).value == 1
