"""A store of documents in trouble: the declared default or a turn that fails, always recorded."""

import asyncio

import pytest

from support.run_play import ADA, Seconds
from support.source_play import MortalJournal, declared, play, store_at, tell, variable
from weft.engine.events import ContextFetched, RunEnded, TurnFailed, VariableSet
from weft.inspect.run import inspect_run
from weft.ports.external import ExternalPorts
from weft.runtime.signals import Stop
from weft.runtime.variables import sources
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel

ORDER = {"user_id": "ada", "number": 7}


def database(type_="any", **source):
    return variable(type_, "database", **{"collection": "Orders", **source})


#: How a store may fail, and what is said of it.
TROUBLES = {
    "down": "the disk is gone",
    "slow": "the document store did not answer within 0.05 s",
    "wrong": 'it has the wrong shape: stock: expected int, got "seven"',
    "none": "this host has no document store",
    "odd": "it failed unexpectedly, with ZeroDivisionError",
    "cancelled": "it failed unexpectedly, with CancelledError",
    "exits": "it failed unexpectedly, with SystemExit",
    "closes": "it failed unexpectedly, with GeneratorExit",
}


def fails(kind):
    async def never(_what):
        await asyncio.sleep(30)

    errors = {
        "odd": ZeroDivisionError,
        "cancelled": asyncio.CancelledError,
        "exits": SystemExit,
        "closes": GeneratorExit,
    }

    async def broken(_what):
        raise errors[kind]

    def change(store):
        if kind in errors:
            store.before = broken
        if kind == "down":
            store.down = TROUBLES["down"]
        if kind == "slow":
            store.before = never

    return change


@pytest.mark.parametrize("strategy", ["once", "per_phase"])
@pytest.mark.parametrize("default", [None, 3])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_store_in_trouble_gives_the_default_or_fails_the_turn(
    tmp_path, monkeypatch, trouble, default, strategy
):
    monkeypatch.setattr(sources, "PATIENCE", 0.05)
    stock = {"search_by": "user_id", "field": "number", "default": default}
    spec = declared({"stock": database("int", refresh_strategy=strategy, **stock)})
    number = "seven" if trouble == "wrong" else 7
    told = play(
        spec,
        ScriptedModel(["Done."]),
        documents=None if trouble == "none" else tmp_path / "d.db",
        having={"Orders": {"user_id": "ada", "number": number}},
        store=fails(trouble),
    )
    (fetched,) = told.of(ContextFetched)
    assert fetched.errors["stock"].startswith(TROUBLES[trouble])
    told.expect_same_again()
    seen = inspect_run(told.workflow, told.run, told.events)
    (record,) = [*seen.fetched, *(item for turn in seen.turns for item in turn.fetched)]
    assert record.how == ("error" if default is None else "default")
    assert record.error.startswith(TROUBLES[trouble])
    if default is None:
        assert told.row.outcome == "failed"
        assert told.row.reason.startswith(f"stock could not be read: {TROUBLES[trouble]}")
        assert [event.kind for event in told.of(TurnFailed)] == ["source"]
        assert told.state.variables["stock"] is None
    else:
        assert told.of(RunEnded)[0].outcome == "completed"
        assert told.of(VariableSet) == [VariableSet("stock", 3, "source:database")]
        assert fetched.found["stock"]["default"] is True


async def test_the_next_run_works_when_the_store_does_again(tmp_path):
    spec = declared({"stock": database("int", search_by="user_id", field="number")})
    async with store_at(tmp_path / "d.db", {"Orders": dict(ORDER)}) as store:
        outside = ExternalPorts(documents=store)
        model = FunctionModel(lambda _: "Done.")
        async with host_for(spec, model, clock=Seconds(), outside=outside) as host:
            outcomes = []
            for store.down in ("the disk is gone", ""):
                run = await host.start("W", scope=ADA, message="hello")
                outcomes.append((await host.settled(run, scope=ADA)).outcome)
            assert outcomes == ["failed", "completed"]


@pytest.mark.parametrize("end", ["stopped", "resumed"])
async def test_a_run_that_waits_for_a_store_can_be_stopped_and_be_resumed(tmp_path, end):
    spec = declared({"stock": database("int", search_by="user_id", field="number")})
    journal = MortalJournal(0)
    async with store_at(tmp_path / "d.db", {"Orders": dict(ORDER)}) as store:
        close, store.close = store.close, lambda: asyncio.sleep(0)  # It has two hosts.
        reached = asyncio.Event()

        async def wait(_what):
            reached.set()
            await asyncio.sleep(30)

        store.before = wait
        options = {
            "clock": Seconds(),
            "store": journal,
            "outside": ExternalPorts(documents=store),
        }
        async with host_for(spec, FunctionModel(lambda _: "Done."), **options) as host:
            run = await host.start("W", scope=ADA, message="hello")
            await reached.wait()
            if end == "stopped":
                await host.deliver(run, Stop(), scope=ADA)
                told = await tell(host, run)
        store.before = None
        if end == "resumed":
            async with host_for(spec, FunctionModel(lambda _: "Done."), **options) as host:
                await host.resume(run, scope=ADA, take_over=True)
                told = await tell(host, run)
        store.close = close
        times = len(store.asked)
    told.expect_same_again()
    if end == "stopped":
        assert (told.row.outcome, times) == ("cancelled", 1)
    else:
        assert (told.row.outcome, told.values("stock"), times) == ("completed", [7], 2)
