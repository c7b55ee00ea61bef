"""How a model is asked: settings of workflow and agent, from the package to the wire."""

import asyncio
from random import Random
from typing import Any

import pytest
from benchmarks.mock_server import Answer, MockServer
from pydantic import ValidationError

from support.cases import read_cases
from support.model_play import StillClock
from support.run_play import ADA, play
from weft.adapters.memory import MemoryStore
from weft.adapters.models.registry import ModelRegistry
from weft.inspect.turn import inspect_turn
from weft.packages.reader import read_package
from weft.runtime.signals import UserMessage
from weft.runtime.workflow import cache_seed
from weft.spec.agents import RESERVED, ModelSettings
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel

CASES = read_cases(__file__)

TO_USER = {"source_agent": "A", "target_agent": "user"}


def declared(own: Any = None, usual: Any = None, *more: Any) -> WorkflowSpec:
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": "A",
                "model_settings": usual,
                "orchestration_pattern": "Pipeline" if more else "DefaultPattern",
            },
            "agents": [{"agent_name": "A", "model_settings": own}, *more],
            "handoffs": [] if more else [TO_USER],
        }
    )


def on_the_wire(spec: WorkflowSpec) -> dict[str, Any]:
    """Run a workflow with a model server on this machine, and return what came there."""

    async def scenario() -> dict[str, Any]:
        models = ModelRegistry(clock=StillClock(), random=Random(1), settings={})
        async with MockServer([Answer("Hello.")]) as server:
            model = models.model(f"{server.base_url}#small")
            async with host_for(spec, model) as host:
                run = await host.start("W", scope=ADA, message="hi")
                await host.settled(run, scope=ADA)
            await models.close()
            return server.seen[0].body

    return asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize(("settings", "sent"), CASES["test_a_setting_is_sent_and_nothing_else"])
def test_a_setting_is_sent_and_nothing_else(settings: dict[str, Any], sent: dict[str, Any]):
    body = on_the_wire(declared(settings))
    assert body.pop("model") == "small"
    assert [message["content"] for message in body.pop("messages")] == ["hi"]
    assert body == sent


def test_model_settings_of_an_agent_win_field_by_field_over_those_of_the_workflow():
    model = ScriptedModel(["one", "two", "three"])
    usual = {"temperature": 1, "seed": 3, "extra_body": {"a": 1, "b": 2}}
    own = {"temperature": 0, "top_p": 0.5, "extra_body": {"a": 9}}
    mute = {"agent_name": "B"}
    empty = {"agent_name": "C", "model_settings": {}}
    play(declared(own, usual, mute, empty), model)
    first, *others = [request.settings for request in model.requests]
    expected = {"temperature": 0, "seed": 3, "top_p": 0.5, "extra_body": {"a": 9}}
    assert first == ModelSettings.model_validate(expected)
    assert others == [ModelSettings.model_validate(usual)] * 2


@pytest.mark.parametrize("settings", [None, {}])
def test_no_message_without_settings(settings: Any):
    model = ScriptedModel(["one"])
    play(declared(settings, settings), model)
    assert model.requests[0].settings is None


def test_the_cache_seed_is_a_number_that_never_changes():
    assert cache_seed("app", "W", "run1") == 251718566
    named = [("app", "W", "run1"), ("app", "W", "run2"), ("app", "V", "run1")]
    named += [("ap", "pW", "run1"), ("b", "W", "run1")]
    assert len({cache_seed(*item) for item in named}) == 5
    assert all(0 < cache_seed("a", "w", str(run)) < 2**31 for run in range(1000))


async def test_a_run_that_is_resumed_has_the_seed_it_had():
    spec = declared({"seed": "cache_seed", "temperature": 0})
    journal, asked = MemoryStore(), asyncio.Event()
    journal.close = nothing  # type: ignore[method-assign]
    before = FunctionModel(lambda _: stay(asked))
    async with host_for(spec, before, store=journal) as host:
        await host.start("W", scope=ADA, message="hi", run="left")
        await asked.wait()
    after = FunctionModel(lambda _: "Hello.")
    async with host_for(spec, after, store=journal) as host:
        await host.resume("left", scope=ADA)
        await host.settled("left", scope=ADA)
        await host.deliver("left", UserMessage("and?"), scope=ADA)
        await host.settled("left", scope=ADA)
    sent = [request.settings for request in (*before.requests, *after.requests)]
    assert [(item.seed, item.temperature) for item in sent] == [
        (cache_seed("app", "W", "left"), 0)
    ] * 3


async def stay(asked: asyncio.Event) -> str:
    asked.set()
    await asyncio.Event().wait()
    return ""


async def nothing() -> None:
    pass


def test_inspection_tells_what_a_turn_was_asked_with():
    played = play(declared({"seed": "cache_seed", "stop": ["X"]}), ScriptedModel(["one"]))
    record = inspect_turn(played.workflow, played.run, played.events, 1).record
    assert record.settings == {"seed": cache_seed("app", "W", played.run), "stop": ("X",)}
    played = play(declared(), ScriptedModel(["one"]))
    assert inspect_turn(played.workflow, played.run, played.events, 1).record.settings == {}


def test_of_a_fork_only_its_own_turns_have_its_seed():
    model = ScriptedModel(["one", "two", "two again"])

    async def again(host: Any, run: str) -> str:
        return await host.fork(run, scope=ADA, turn=2)

    seed = {"seed": "cache_seed"}
    played = play(declared(None, seed, {"agent_name": "B"}), model, after=again)
    told = [
        inspect_turn(played.workflow, played.run, played.events, turn).record.settings
        for turn in (1, 2)
    ]
    own = cache_seed("app", "W", played.run)
    assert told == [seed, {"seed": own}]
    assert model.requests[-1].settings == ModelSettings(seed=own)


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_extra_body_cannot_be_another_call(key: str):
    with pytest.raises(ValidationError, match=f"extra_body cannot hold {key}, which Weft sends"):
        ModelSettings(extra_body={"user": "u", key: "x"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('{"extra_body": {"tools": []}}', "extra_body: extra_body cannot hold tools"),
        ('{"temperature": 3}', "temperature: expected a number "),
        ('{"top_p": 0}', "top_p: expected a number greater than 0 and at most 1"),
        ('{"max_tokens": 0}', "max_tokens: expected a number of 1 or more"),
        ('{"reasoning_effort": "much"}', "reasoning_effort: "),
        ('{"stop": [""]}', "stop[0]: "),
    ],
)
def test_unsendable_value_is_refused_at_its_place(tmp_path: Any, settings: str, said: str):
    orchestrator = '{"workflow_name": "W", "initial_agent": "A"}'
    (tmp_path / "orchestrator.json").write_text(orchestrator)
    agent = f'{{"agent_name": "A", "model_settings": {settings}}}'
    (tmp_path / "agents.json").write_text(f'{{"agents": [{agent}]}}')
    (finding,) = read_package(tmp_path).findings
    assert finding.code == "SCHEMA007"
    assert finding.message.startswith(f"agents[0].model_settings.{said}")
    assert finding.place.file == str(tmp_path / "agents.json")
