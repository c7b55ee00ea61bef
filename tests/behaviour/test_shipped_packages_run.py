"""Every shipped package comes to its end with the sample model, and always in the same way."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from support.shipped import BOARDS, FLOWS
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import steering_of
from weft.app.recorded_scenarios import save_scenario
from weft.app.scenarios import RunFacts, facts_of, run_scenario
from weft.app.simulation import SAMPLE_MESSAGE, sample_answer
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
from weft.packages.reader import Package, read_package
from weft.packages.scenarios import read_scenario
from weft.packages.workspace import EVERYWHERE, shipped_folder
from weft.ports.scope import Scope
from weft.runtime.signals import Answer, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for

ADA = Scope("app", "ada")
SEEDS = range(10)
DECISIONS = (ModelReplied, ToolCalled, RequestAnswered, HandedOff, RunEnded)
#: A board begins with an artifact and a flow with values, not with a message.
#: The Generator's replies must be a plan that holds, which nobody makes up.
OTHERS = (*BOARDS, *FLOWS, *EVERYWHERE)
PACKAGES = sorted(file for file in shipped_folder().iterdir() if file.name not in OTHERS)


def _subject(package: Package) -> Subject:
    code = {path: raw.decode() for path, raw in package.code.items()}
    return Subject(package.spec, code=code)


async def play(package: Package, seed: int) -> RunFacts:
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
        return await facts_of(host, await host.run(run, scope=ADA))


def course(events: list[Event]) -> tuple[list[EventData], list[str]]:
    """Return what was decided, in its order, and what tools returned, which may come in any."""
    decided = [event.data for event in events if isinstance(event.data, DECISIONS)]
    return decided, sorted(
        repr(event.data) for event in events if isinstance(event.data, ToolReturned)
    )


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_every_run_ends_by_a_rule_and_goes_the_same_way_again(folder: Path):
    package = read_package(folder)
    for seed in SEEDS:
        once = asyncio.run(asyncio.wait_for(play(package, seed), 30))
        if seed < 3:
            again = asyncio.run(asyncio.wait_for(play(package, seed), 30))
            assert course(once.events) == course(again.events)
        end = once.events[-1].data
        assert isinstance(end, RunEnded)
        assert end.outcome == "completed", seed


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_any_run_can_be_saved_as_a_test_that_passes_at_once(folder: Path):
    package = read_package(folder)

    async def check(text: str):
        file = read_scenario(package, "tests/saved.yaml", text.encode())
        return (await run_scenario(package, file)).as_json()

    async def save(seed: int) -> str:
        text, volatile = await save_scenario(await play(package, seed), check)
        assert volatile == []
        assert (await check(text))["passed"]
        return text

    for seed in (0, 1):
        text = asyncio.run(asyncio.wait_for(save(seed), 30))
        assert "outcome: completed" in text
        wrong = text.replace("outcome: completed", "outcome: failed")
        assert not asyncio.run(check(wrong))["passed"]


def test_the_runs_of_a_package_go_every_way_its_rules_allow():
    package = read_package(shipped_folder() / "ContextAwareRouting")
    runs = [asyncio.run(asyncio.wait_for(play(package, seed), 30)) for seed in range(40)]
    taken = {
        event.data.rule for run in runs for event in run.events if isinstance(event.data, HandedOff)
    }
    assert taken >= set(range(len(package.spec.handoffs)))


def test_every_reply_is_badged_as_a_sample():
    package = read_package(shipped_folder() / "HelloWorld")
    events = asyncio.run(asyncio.wait_for(play(package, 0), 30)).events
    assert {event.data.answerer for event in events if isinstance(event.data, ModelReplied)} == {
        "sample"
    }
