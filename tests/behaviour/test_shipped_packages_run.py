"""Every shipped package comes to its end with the sample model, and always in the same way."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import steering_of
from weft.check.subject import Subject
from weft.engine.compile import compile_workflow
from weft.engine.events import (
    Event,
    EventData,
    HandedOff,
    ModelReplied,
    RequestAnswered,
    RunEnded,
    ToolCalled,
    ToolReturned,
)
from weft.engine.state import State
from weft.packages.reader import Package, read_package
from weft.packages.workspace import BOARDS, EVERYWHERE, FLOWS, shipped_folder
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.people import SAMPLE_MESSAGE, sample_answer

ADA = Scope("app", "ada")
MANAGER = Scope("app", "eve", ("manager",))
SEEDS = range(10)
DECISIONS = (ModelReplied, ToolCalled, RequestAnswered, HandedOff, RunEnded)
#: A board begins with an artifact and a flow with values, not with a message.
#: The Generator's replies must be a plan that holds, which nobody makes up.
OTHERS = (*BOARDS, *FLOWS, *EVERYWHERE)
PACKAGES = sorted(it for it in shipped_folder().iterdir() if it.name not in OTHERS)


def _subject(package: Package) -> Subject:
    code = {path: raw.decode() for path, raw in package.code.items()}
    return Subject(package.spec, code=code)


async def play(package: Package, seed: int) -> list[Event]:
    """Run a package to its end, with a person whose answers are made up too."""
    compiled = compile_workflow(package.spec)
    steering = steering_of(_subject(package))
    random = Random(seed)
    model = SampleModel(seed, steering)
    async with host_for(package.spec, model, code=package.code, clock=ManualClock()) as host:
        name = package.spec.orchestrator.workflow_name
        run = await host.start(name, scope=ADA, message=SAMPLE_MESSAGE)
        while (await host.settled(run, scope=ADA)).status != "ended":
            state = await host.state(run, scope=ADA)
            for request in state.requests.values():
                if request.kind == "chat":
                    signal = UserMessage(SAMPLE_MESSAGE, id=request.id)
                else:
                    value = sample_answer(compiled, steering, request.tool or "", random)
                    signal = Answer(request.id, value)
                await host.deliver(run, signal, scope=ADA)
        return [it async for it in host.events(run, scope=ADA) if isinstance(it, Event)]


async def play_flow(package: Package, **values: object) -> State:
    """Run a flow to its end, with a manager who approves everything."""
    model = SampleModel(1, steering_of(_subject(package)))
    async with host_for(package.spec, model, code=package.code, clock=ManualClock()) as host:
        run = await host.start(package.spec.orchestrator.workflow_name, scope=ADA, values=values)
        if (await host.settled(run, scope=ADA)).status != "ended":
            (asked,) = await host.requests(scope=MANAGER, run=run)
            await host.deliver(run, Answer(asked.id, {"decision": "approve"}), scope=MANAGER)
        await host.settled(run, scope=ADA)
        return await host.state(run, scope=ADA)


@pytest.mark.parametrize("values", [{}, {"payment": "invoice"}, {"amount": 900.0}])
def test_an_order_is_shipped(values):
    package = read_package(shipped_folder() / "OrderProcessing")
    state = asyncio.run(asyncio.wait_for(play_flow(package, **values), 30))
    assert state.outcome == "completed"
    assert state.variables["parcel"] == "parcel-A-1"
    assert state.variables["log"][-1] == "closed"


@pytest.mark.parametrize(
    ("values", "last"),
    [
        ({"card": "declined"}, []),
        ({"items": ["unicorn"]}, ["card-A-1 given back"]),
        ({"amount": 0.0}, []),
    ],
)
def test_an_order_that_cannot_be_carried_out_is_undone(values, last):
    package = read_package(shipped_folder() / "OrderProcessing")
    state = asyncio.run(asyncio.wait_for(play_flow(package, **values), 30))
    assert state.outcome == "failed"
    *done, told = state.variables["log"]
    assert told.startswith("support told about A-1: ")
    assert done[len(done) - len(last) :] == last
    assert (state.variables["paid_by"], state.variables["reserved"]) == ("", [])


def course(events: list[Event]) -> tuple[list[EventData], list[str]]:
    """Return what was decided, in its order, and what tools returned, which may come in any."""
    decided = [it.data for it in events if isinstance(it.data, DECISIONS)]
    return decided, sorted(repr(it.data) for it in events if isinstance(it.data, ToolReturned))


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_every_run_ends_by_a_rule_and_goes_the_same_way_again(folder: Path):
    package = read_package(folder)
    for seed in SEEDS:
        once = asyncio.run(asyncio.wait_for(play(package, seed), 30))
        if seed < 3:
            again = asyncio.run(asyncio.wait_for(play(package, seed), 30))
            assert course(once) == course(again)
        end = once[-1].data
        assert isinstance(end, RunEnded)
        assert end.outcome == "completed", seed


def test_the_runs_of_a_package_go_every_way_its_rules_allow():
    package = read_package(shipped_folder() / "ContextAwareRouting")
    runs = [asyncio.run(asyncio.wait_for(play(package, seed), 30)) for seed in range(40)]
    taken = {it.data.rule for events in runs for it in events if isinstance(it.data, HandedOff)}
    assert taken >= set(range(len(package.spec.handoffs)))


def test_every_reply_is_badged_as_a_sample():
    package = read_package(shipped_folder() / "HelloWorld")
    events = asyncio.run(asyncio.wait_for(play(package, 0), 30))
    assert {it.data.answerer for it in events if isinstance(it.data, ModelReplied)} == {"sample"}
