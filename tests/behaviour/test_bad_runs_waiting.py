"""Runs that wait for people: in the process nothing of them is left but what one task watches."""

import asyncio
import gc
import weakref
from collections import Counter

import pytest

from behaviour.bad_run_play import ADA, finished, open_host, spec
from weft.errors import UsageError
from weft.runtime import worker
from weft.runtime.runs import memory
from weft.runtime.runs.active import ActiveRun
from weft.runtime.signals import Answer, UserMessage
from weft.testing.models import FunctionModel, call

CODE = b'''
from weft import Ask, use_ui_tool


def ask_first(context_variables, seconds: float | None = None) -> str:
    """Ask, and be called again."""
    if not context_variables.answers:
        raise Ask("tea?", timeout=seconds)
    return str(context_variables.answers[0])


async def ask() -> str:
    """Ask, and wait."""
    return str(await use_ui_tool("ask", "tea?"))
'''
TO_USER = [{"source_agent": "Clerk", "target_agent": "user"}]
SPEC = spec(ui=("ask", "ask_first"))
CHAT = spec(handoffs=TO_USER)
MANY = 300


def saying(line):
    def reply(request):
        return "Done." if request.messages[-1]["role"] == "tool" else line

    return FunctionModel(reply)


def timers():
    """How many timers of the loop are set."""
    return sum(not item.cancelled() for item in asyncio.get_running_loop()._scheduled)


async def eventually(holds):
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    assert holds()


async def many_waiting(host):
    runs = [await host.start("Desk", scope=ADA, message="hi") for _ in range(MANY)]
    for run in runs:
        assert (await host.settled(run, scope=ADA)).status == "waiting"
    return runs


@pytest.mark.parametrize(
    ("declared", "line", "watched"),
    [
        (CHAT, "What else?", 0),
        (SPEC, call("ask_first"), 0),
        # However many may expire: one task sleeps until the next of them, with two helpers.
        (SPEC, call("ask_first", seconds=3600), 3),
        (SPEC, call("ask"), 0),
    ],
)
async def test_a_run_that_waits_is_at_most_a_state_in_memory(
    tmp_path, monkeypatch, declared, line, watched
):
    alive, made = weakref.WeakSet(), []

    class Counted(ActiveRun):
        def __init__(self, *given):
            super().__init__(*given)
            alive.add(self)
            made.append(id(self))

    monkeypatch.setattr(worker, "ActiveRun", Counted)
    async with await open_host(tmp_path / "j.db", declared, saying(line), CODE) as host:
        host._worker._performer.holding.seconds = 0.1
        await host.runs(scope=ADA)
        tasks, timed = len(asyncio.all_tasks()), timers()
        runs = await many_waiting(host)
        await eventually(lambda: not host._worker)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks + watched)
        assert timers() <= timed + bool(watched)
        assert not host._worker._loading
        assert not host._worker.failures.stopped()
        assert not host._followers
        gc.collect()
        assert len(made) >= MANY
        assert len(alive) <= memory.MAX_IDLE_RUNS, "only so many stay for their next message"
        (first, last, asked) = runs[0], runs[-1], await host.requests(scope=ADA)
    assert len(asked) == MANY
    assert {first, last} <= {row.run for row in asked}


async def test_a_message_that_names_its_question_counts_once_however_late_it_comes_again(tmp_path):
    async with await open_host(tmp_path / "j.db", CHAT, saying("What else?"), CODE) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        (question,) = await host.requests(scope=ADA, run=run)
        said = Answer(question.id, "pay 100")
        await host.deliver(run, said, scope=ADA)
        await host.settled(run, scope=ADA)
        with pytest.raises(UsageError, match="is not open"):
            await host.deliver(run, said, scope=ADA)
        outcome = await host.state(run, scope=ADA)
    assert [message.text for message in outcome.messages if message.role == "user"] == [
        "hi",
        "pay 100",
    ]


async def test_only_so_many_runs_are_held_while_their_tools_wait(tmp_path):
    async with await open_host(tmp_path / "j.db", SPEC, saying(call("ask")), CODE) as host:
        host._worker._performer.holding.most = 5
        runs = await many_waiting(host)
        await eventually(lambda: len(host._worker) == 5)
        (question,) = await host.requests(scope=ADA, run=runs[-1])
        await host.deliver(runs[-1], Answer(question.id, "green"), scope=ADA)
        assert (await finished(host, runs[-1])).row.outcome == "completed"


async def test_any_waiting_run_continues_and_the_others_stay(tmp_path):
    path = tmp_path / "j.db"
    async with await open_host(path, SPEC, saying(call("ask_first")), CODE) as host:
        runs = await many_waiting(host)
    async with await open_host(path, SPEC, saying("Done."), CODE) as host:
        assert await host.recover() == []
        assert not host._worker
        (question,) = await host.requests(scope=ADA, run=runs[7])
        await host.deliver(runs[7], Answer(question.id, "green"), scope=ADA)
        told = await finished(host, runs[7])
        await eventually(lambda: not host._worker)
        statuses = Counter([run.status for run in await host.runs(scope=ADA, limit=MANY)])
    assert told.row.outcome == "completed"
    assert statuses == {"ended": 1, "waiting": MANY - 1}


async def test_a_run_that_comes_and_goes_leaves_nothing_either(tmp_path):
    async with await open_host(tmp_path / "j.db", CHAT, saying("What else?"), CODE) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        tasks = len(asyncio.all_tasks())
        for number in range(20):
            await host.deliver(run, UserMessage(f"{number}"), scope=ADA)
            assert (await host.settled(run, scope=ADA)).status == "waiting"
        await eventually(lambda: not host._worker)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        assert (await finished(host, run)).row.turns == 21
