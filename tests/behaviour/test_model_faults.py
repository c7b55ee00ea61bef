"""Whatever a model server does wrong: tried again, explained, recorded; and the next run works."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from benchmarks.mock_server import FAULTS, Answer, MockServer, error

from support.model_play import StillClock, ask, run
from weft.adapters.models.limits import RetryPolicy
from weft.adapters.models.registry import CallRules, ModelRegistry
from weft.engine.events import Event, ModelFailed, RunEnded
from weft.errors import ModelError
from weft.ports.model import Model
from weft.ports.scope import Scope
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for

ADA = Scope("app", "ada")
TRIES = 3

#: What goes wrong, and what the message says of it and of what to do.
WORDS = {
    "garbage": ("not a chat completion", "Check that the base URL"),
    "empty": ("not a chat completion", "Check that the base URL"),
    "no_choices": ("not a chat completion at choices", "Check that the base URL"),
    "types": ("not a chat completion at choices", "Check that the base URL"),
    "bad_arguments": ("arguments for lookup cannot be read", "use a model that calls tools"),
    "list_arguments": ("they are not a JSON object", "use a model that calls tools"),
    "429": ("answered 429: too many requests", "raise the limit"),
    "500": ("answered 500: the server has an inner fault", "name a fallback model"),
    "503": ("answered 503: the server is overloaded", "name a fallback model"),
    "cut": ("the ", "or"),
    "hang": ("no answer from", "allow more time"),
}
LASTING = {
    400: "Check that this model supports the request",
    401: "Check the key.",
    403: "Check the rights of the key.",
    404: "Check the name of the model",
    413: "Send less",
    422: "Check that this model supports the request",
}


@asynccontextmanager
async def models(*script: Answer, clock: StillClock | None = None) -> AsyncIterator[Model]:
    policy = RetryPolicy(attempts=TRIES, first_wait=0.01)
    registry = ModelRegistry(
        clock=clock or StillClock(),
        random=Random(1),
        settings={},
        rules=CallRules(seconds=0.3, retries=policy),
    )
    async with MockServer(script) as server:
        yield registry.model(f"{server.base_url}#small")
        await registry.close()


def failure(*script: Answer, stream: bool = False, clock: StillClock | None = None) -> ModelError:
    """Ask until nothing is left to try, then ask once more: the next call must work."""

    async def play() -> ModelError:
        async with models(*script, Answer("well again"), clock=clock) as model:
            with pytest.raises(ModelError) as caught:
                await model.reply(ask(), [].append if stream else None)
            assert (await model.reply(ask())).text == "well again"
            return caught.value

    return run(play())


@pytest.mark.parametrize("kind", sorted(WORDS))
@pytest.mark.parametrize("stream", [False, True])
def test_transient_error_is_retried_then_explained(kind: str, stream: bool):
    caught = failure(*[FAULTS[kind]] * TRIES, stream=stream)
    assert caught.attempts == TRIES
    assert str(caught).endswith(f"(attempts: {TRIES})")
    for words in WORDS[kind]:
        assert words in str(caught)
    assert re.search(r"small at 127\.0\.0\.1:|http://127\.0\.0\.1:\d+/v1#small", str(caught))


@pytest.mark.parametrize("status", sorted(LASTING))
def test_permanent_error_is_tried_once_and_explained(status: int):
    caught = failure(error(status, "No."))
    assert caught.attempts == 1
    assert LASTING[status] in str(caught)


def test_an_account_that_is_empty_is_not_waited_for():
    raw = b'{"error": {"message": "No credit", "code": "insufficient_quota"}}'
    caught = failure(Answer(status=429, raw=raw))
    assert caught.attempts == 1
    assert "top it up" in str(caught)


def test_the_wait_that_is_asked_for_is_kept():
    clock = StillClock()
    busy = error(429, "slow down", Retry_After="7")
    failure(busy, busy, error(400, "no"), clock=clock)
    assert clock.waits == [7.0, 7.0]


async def test_a_failed_model_ends_its_run_with_all_attempts_recorded_and_the_next_run_works():
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "handoffs": [{"source_agent": "A", "target_agent": "terminate"}],
        }
    )
    faults = [FAULTS["500"], FAULTS["garbage"], FAULTS["cut"]]
    async with models(*faults, Answer("fine")) as model, host_for(spec, model) as host:
        first = await host.start("W", scope=ADA, message="hi")
        await host.settled(first, scope=ADA)
        second = await host.start("W", scope=ADA, message="hi")
        row = await host.settled(second, scope=ADA)
        events = [
            event async for event in host.events(first, scope=ADA) if isinstance(event, Event)
        ]
        next_outcome = row.outcome
    (failed,) = (event.data for event in events if isinstance(event.data, ModelFailed))
    assert failed.attempts == TRIES
    end = events[-1].data
    assert isinstance(end, RunEnded)
    assert end.outcome == "failed"
    assert "small at 127.0.0.1" in end.reason
    assert next_outcome == "completed"
