"""A store that does not say whether it has written: nothing is lost, and nothing is done twice."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, play
from support.group_play import CODE, COUNT, team
from support.run_play import Seconds
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.engine.events import Event, ToolCalled, ToolReturned
from weft.errors import StoreError, UsageError
from weft.inspect.replay import check_replay
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, UserMessage
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call
from weft.testing.store.lossy import LossyStore

#: How many batches the run below takes, at least; a loss of each of them is tried.
BATCHES = 14

NOTING = b'''
def note(path: str, what: str, context_variables) -> str:
    """Write something down, for good."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{what} {context_variables.key}\\n")
    return what
'''


def spec():
    note = {"tool_type": "Agent_Tool", "function": "note", "file": "notes.py", "description": "d"}
    declared = team(members=["Ann", "Ben"])
    return declared.model_validate(
        {
            **declared.model_dump(),
            "tools": [
                *(tool.model_dump() for tool in declared.tools),
                *({**note, "agent": name} for name in ("Lead", "Ann", "Ben")),
                {**COUNT, "file": "work.py", "description": "d", "agent": "Editor"},
            ],
            "handoffs": [
                {"source_agent": "Lead", "target_agent": "Team"},
                {"source_agent": "Editor", "target_agent": "terminate", "condition": "total > 0"},
                {"source_agent": "Editor", "target_agent": "user"},
            ],
        }
    )


def script(path):
    def noted(what):
        return call("note", path=str(path), what=what)

    return ScriptedModel(
        {
            "Lead": [noted("lead"), "go"],
            "Ann": [call("ask", what="tea"), noted("ann"), "done"],
            "Ben": [noted("ben"), "done"],
            "Editor": [call("nothing"), "and?", call("count"), "over"],
        },
        strict=False,
    )


async def open_memory(_path):
    return MemoryStore()


async def lead(host):
    """Take a run through a group, a question and a second message, to its end."""
    run = await host.start("Side", scope=ADA, message="write", run="run")
    assert (await host.settled(run, scope=ADA)).status == "waiting"
    (asked,) = await host.requests(scope=ADA, run=run)
    await host.deliver(run, Answer(asked.id, "green"), scope=ADA)
    assert (await host.settled(run, scope=ADA)).status == "waiting"
    await host.deliver(run, UserMessage("once more", id="m1"), scope=ADA)
    return await host.settled(run, scope=ADA)


@pytest.mark.parametrize("number", range(1, BATCHES + 1))
@pytest.mark.parametrize("open_journal", [open_memory, SqliteStore.open], ids=["memory", "sqlite"])
def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path, open_journal, number):
    """The acknowledgement of each n-th batch is lost; of all of them where n is 1."""
    notes = tmp_path / "notes.txt"

    async def scenario():
        kept = await open_journal(tmp_path / "j.db")
        journal = LossyStore(kept, lambda item: item % number == 0)
        host = host_for(
            spec(),
            script(notes),
            code={**CODE, "tools/notes.py": NOTING},
            store=journal,
            clock=Seconds(),
        )
        async with host:
            row = await asyncio.wait_for(lead(host), 20)
            events = [
                event async for event in host.events("run", scope=ADA) if isinstance(event, Event)
            ]
            return row, events, await host.workflow("run", scope=ADA), journal

    row, events, workflow, journal = play(scenario)
    assert row.outcome == "completed"
    assert journal.answered >= BATCHES
    assert journal.lost == journal.answered // number
    lines = notes.read_text(encoding="utf-8").splitlines()
    assert sorted(line.split()[0] for line in lines) == ["ann", "ben", "lead"], (
        "each is called once"
    )
    calls = [event.data.id for event in events if isinstance(event.data, ToolCalled)]
    returned = [event.data.id for event in events if isinstance(event.data, ToolReturned)]
    assert len(calls) == len(set(calls)) == len(returned) == len(set(returned))
    assert [event.seq for event in events] == list(range(1, row.seq + 1))
    assert check_replay(workflow, "run", events) == []


def test_start_with_a_lost_acknowledgement_begins_one_run():
    async def scenario():
        journal = LossyStore(MemoryStore(), lambda item: item == 1)
        async with host_for(team(), ScriptedModel([]), store=journal, code=CODE) as host:
            await host.start("Side", scope=ADA, message="write", run="run")
            with pytest.raises(UsageError, match="was started before"):
                await host.start("Side", scope=ADA, message="write", run="run")

    play(scenario)


def test_batch_of_another_user_is_not_taken_for_a_lost_one():
    """Two begin a run under one name; one is told that it may have been written, but it was not."""

    class Overtaken(MemoryStore):
        first = True

        async def append(self, batch, *, owner):
            if self.first:
                self.first = False
                other = batch.row._replace(user="eve", batch="other.1")
                await super().append(batch._replace(row=other), owner="other")
                raise StoreError("the connection broke", retryable=True, uncertain=True)
            return await super().append(batch, owner=owner)

    async def scenario():
        journal = Overtaken()
        async with host_for(team(), ScriptedModel([]), store=journal, code=CODE) as host:
            with pytest.raises(UsageError, match="was started before"):
                await host.start("Side", scope=ADA, message="write", run="run")
            return await journal.run(Scope.operator("app"), "run")

    assert play(scenario).user == "eve"
