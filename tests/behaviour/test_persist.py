"""Values that a user's later runs begin with, and parallel writers of one variable."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from support.run_play import Seconds
from support.source_play import declared, derived, desk, tell
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.engine.events import RunStarted, VariableRefused
from weft.inspect.run import inspect_run
from weft.ports.scope import Scope
from weft.runtime.signals import UserMessage
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, call

ADA = Scope("app", "ada")
CODE = desk(
    '''
def put(name: str, value: str | int | list | dict, context_variables) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return "done"
'''
)


def persistent(type_="str", default="de", **source):
    return {
        "type": type_,
        "source": {"type": "derived", "default": default, "persist": True, **source},
    }


def puts(**values):
    """Return a model that sets values with its tool, then is done."""

    def reply(request):
        if request.messages[-1]["role"] == "tool" or not values:
            return "Done."
        return [call("put", name=name, value=value) for name, value in values.items()]

    return FunctionModel(reply)


@pytest.fixture(params=["memory", "sqlite"])
def hosting(request, tmp_path):
    """Open hosts on one journal, one after the other."""
    memory = MemoryStore()
    memory.close = lambda: asyncio.sleep(0)  # It is used by the next host.
    clock = Seconds()

    @asynccontextmanager
    async def opened(spec, model):
        journal = memory
        if request.param == "sqlite":
            journal = await SqliteStore.open(tmp_path / "journal.db", durability="normal")
        async with host_for(spec, model, code=CODE, clock=clock, store=journal) as host:
            yield host

    return opened


def spec_of(variables, name="W", **rest):
    return declared(variables, tools=["put"], orchestrator={"workflow_name": name}, **rest)


async def play(hosting, spec, model, scope=ADA, **values):
    async with hosting(spec, model) as host:
        name = spec.orchestrator.workflow_name
        run = await host.start(name, scope=scope, message="hello", values=values or None)
        row = await host.settled(run, scope=scope)
        assert row.outcome == "completed", row.reason
        return run, dict((await host.state(run, scope=scope)).variables)


async def test_a_persistent_value_is_what_the_user_s_next_run_begins_with(hosting):
    spec = spec_of({"language": persistent(), "passing": derived("str", "none")})
    _, first = await play(hosting, spec, puts(language="fr", passing="here"))
    assert first == {"language": "fr", "passing": "here"}
    run, later = await play(hosting, spec, puts())
    assert later == {"language": "fr", "passing": "none"}
    async with hosting(spec, puts()) as host:
        told = await tell(host, run, ADA)
    assert told.of(RunStarted)[0].values == {"language": "fr"}
    told.expect_same_again()
    _, given = await play(hosting, spec, puts(), language="it")
    assert given["language"] == "it", "what is given goes first"
    _, last = await play(hosting, spec, puts())
    assert last["language"] == "fr", "what was only given is not kept"


@pytest.mark.parametrize(
    ("scope", "name", "seen"),
    [
        (ADA, "W", "fr"),
        (Scope("app", "bob"), "W", "de"),
        (Scope("other", "ada"), "W", "de"),
        (ADA, "Other", "de"),
    ],
)
async def test_persistent_value_is_private_to_its_user(hosting, scope, name, seen):
    await play(hosting, spec_of({"language": persistent()}), puts(language="fr"))
    spec = spec_of({"language": persistent()}, name)
    _, values = await play(hosting, spec, puts(), scope)
    assert values["language"] == seen


async def test_a_persistent_value_outlives_a_run_that_fails_and_one_that_waits(hosting):
    to_user = {"handoffs": [{"source_agent": "A", "target_agent": "user"}]}
    spec = spec_of({"language": persistent()}, **to_user)
    async with hosting(spec, puts(language="fr")) as host:
        run = await host.start("W", scope=ADA, message="hello")
        assert (await host.settled(run, scope=ADA)).status == "waiting"
        other = await host.start("W", scope=ADA, message="hello")
        await host.settled(other, scope=ADA)
        outcome = (await host.state(other, scope=ADA, at=1)).variables["language"]
    assert outcome == "fr"


async def test_a_fork_persists_nothing(hosting):
    spec = spec_of({"language": persistent()})
    run, _ = await play(hosting, spec, puts(language="fr"))
    async with hosting(spec, puts(language="it")) as host:
        child = await host.fork(run, scope=ADA, turn=1, values={"language": "es"})
        await host.settled(child, scope=ADA)
        assert (await host.state(child, scope=ADA)).variables["language"] == "it"
    _, values = await play(hosting, spec, puts())
    assert values["language"] == "fr"


async def test_persistent_state_is_restored(hosting):
    steps = [{"from": "new", "to": "known"}, {"from": "known", "to": "old"}]
    spec = spec_of({"stage": persistent("str", "new", transitions=steps)})
    await play(hosting, spec, puts(stage="known"))
    _, values = await play(hosting, spec, puts(stage="old"))
    assert values["stage"] == "old"


async def test_a_persistent_value_that_does_not_fit_any_more_is_left_behind(hosting):
    await play(hosting, spec_of({"level": persistent("str", "low")}), puts(level="high"))
    _, values = await play(hosting, spec_of({"level": persistent("int", 1)}), puts())
    assert values["level"] == 1


def group_of(variables):
    agents = ("L", "A", "B", "C", "E")
    tools = [
        {"tool_type": "Agent_Tool", "agent": name, "file": "desk.py", "function": "put"}
        for name in ("A", "B", "C")
    ]
    return declared(
        variables,
        agents=agents,
        tools=tools,
        orchestrator={"parallel": [{"name": "P", "members": ["A", "B", "C"], "next": "E"}]},
        handoffs=[
            {"source_agent": "L", "target_agent": "P"},
            {"source_agent": "E", "target_agent": "terminate"},
        ],
    )


def side_by_side(hosting, variables, **said):
    """Let members of a group each set a variable, slower ones first."""
    delays = {"A": 0.04, "B": 0.02, "C": 0.0}

    async def reply(request):
        agent = request.agent
        if agent not in said or request.messages[-1]["role"] == "tool":
            return "."
        await asyncio.sleep(delays[agent])
        return call("put", name="v", value=said[agent])

    async def scenario():
        async with hosting(group_of(variables), FunctionModel(reply)) as host:
            run = await host.start("W", scope=ADA, message="hello")
            told = await tell(host, run, ADA)
        told.expect_same_again()
        assert told.row.outcome == "completed"
        return told

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def test_merge_append_keeps_what_each_member_has_added(hosting):
    shared = {"v": {**derived("list[int]", [0]), "merge": "append"}}
    told = side_by_side(hosting, shared, A=[0, 1], B=[0, 2, 3], C=[0, 4])
    assert told.state.variables["v"] == [0, 1, 2, 3, 4], "in the order they began"
    assert not told.of(VariableRefused)


def test_merge_append_refuses_what_is_not_longer_than_it_was(hosting):
    shared = {"v": {**derived("list[int]", [0]), "merge": "append"}}
    told = side_by_side(hosting, shared, A=[0, 1], B=[2])
    assert told.state.variables["v"] == [0, 1]
    assert [(event.name, event.writer) for event in told.of(VariableRefused)] == [("v", "agent:B")]


def test_merge_of_objects_keeps_the_keys_each_member_has_set(hosting):
    shared = {"v": {**derived("dict[str, int]", {"x": 0, "y": 0}), "merge": "merge"}}
    told = side_by_side(hosting, shared, A={"x": 1, "y": 0}, B={"x": 0, "y": 2, "z": 3})
    assert told.state.variables["v"] == {"x": 1, "y": 2, "z": 3}


def test_without_merge_the_second_writer_is_refused_and_inspection_says_why(hosting):
    told = side_by_side(hosting, {"v": derived("int", 0)}, A=1, B=2, C=1)
    assert told.state.variables["v"] == 1
    (record,) = inspect_run(told.workflow, told.run, told.events).variables
    assert [item.writer for item in record.refused] == ["agent:B"], "C has set the same as A"
    assert record.refused[0].error == (
        "A has set it in parallel; declare merge for it, or let only one set it"
    )
    assert record.value == 1


def test_a_persistent_value_that_a_member_sets_is_kept_when_the_group_has_joined(hosting):
    variables = {"v": persistent("int", 0)}
    told = side_by_side(hosting, variables, A=5)
    assert told.state.variables["v"] == 5
    again = side_by_side(hosting, variables)
    assert again.of(RunStarted)[0].values == {"v": 5}


async def test_a_message_that_sets_a_persistent_value_counts(hosting):
    heard = {"type": "user_text", "match": {"contains": "bonjour"}, "value": "fr"}
    to_user = {"handoffs": [{"source_agent": "A", "target_agent": "user"}]}
    spec = spec_of({"language": persistent(triggers=[heard])}, **to_user)
    async with hosting(spec, puts()) as host:
        run = await host.start("W", scope=ADA, message="hello")
        await host.settled(run, scope=ADA)
        await host.deliver(run, UserMessage("bonjour"), scope=ADA)
        await host.settled(run, scope=ADA)
    async with hosting(spec, puts()) as host:
        run = await host.start("W", scope=ADA, message="hello")
        await host.settled(run, scope=ADA)
        outcome = (await host.state(run, scope=ADA)).variables["language"]
    assert outcome == "fr"
