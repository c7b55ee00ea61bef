"""What is of the wrong kind is refused where a program gives it, and nothing is written."""

import asyncio

import pytest

import weft
from weft.errors import UsageError
from weft.ports.scope import Scope
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

ADA = Scope("app", "ada")
SPEC = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
        "agents": [{"agent_name": "A"}],
    }
)


def play(scenario):
    async def opened():
        async with host_for(SPEC, FunctionModel(lambda _: "ok")) as host:
            run = await host.start("W", scope=ADA, message="hi")
            row = await host.settled(run, scope=ADA)
            told = await scenario(host, run)
            assert await host.runs(scope=ADA) == [row]
            return told

    return asyncio.run(asyncio.wait_for(opened(), 30))


async def listed(events):
    return [it async for it in events]


CALLS = {
    "model is a text, not 3": [
        lambda host, _: host.start("W", scope=ADA, model=3),
        lambda host, run: host.fork(run, scope=ADA, turn=1, model=3),
    ],
    "workflow is a text, not 3": [lambda host, _: host.start(3, scope=ADA)],
    "values are given by variable, not as ['a']": [
        lambda host, _: host.start("W", scope=ADA, values=["a"]),
        lambda host, run: host.fork(run, scope=ADA, turn=1, values=["a"]),
    ],
    "turn is a number from 0 on, not '1'": [
        lambda host, run: host.fork(run, scope=ADA, turn="1"),
    ],
    "at is a number from 0 on, not '1'": [lambda host, run: host.state(run, scope=ADA, at="1")],
    "at is a number from 0 on, not -1": [lambda host, run: host.state(run, scope=ADA, at=-1)],
    "after is a number from 0 on, not True": [
        lambda host, run: listed(host.events(run, scope=ADA, after=True)),
    ],
    "limit is a number from 0 on, not 2.5": [lambda host, _: host.runs(scope=ADA, limit=2.5)],
    "the tenant of the scope is empty": [
        lambda host, _: host.start("W", scope=Scope("", ""), message="hi"),
    ],
    "the user of the scope is empty": [
        lambda host, _: host.start("W", scope=Scope("app", ""), message="hi"),
    ],
    "scope is a Scope, not 'me'": [
        lambda host, _: host.start("W", scope="me", message="hi"),
        lambda host, run: host.deliver(run, weft.Stop(), scope="me"),
        lambda host, run: host.fork(run, scope="me", turn=1),
        lambda host, run: host.run(run, scope="me"),
        lambda host, _: host.runs(scope="me"),
        lambda host, _: host.requests(scope="me"),
        lambda host, run: host.workflow(run, scope="me"),
        lambda host, run: host.state(run, scope="me"),
        lambda host, run: listed(host.events(run, scope="me")),
        lambda host, run: host.settled(run, scope="me"),
        lambda host, run: host.resume(run, scope="me"),
        lambda host, _: host.prune(scope="me", ended_before=0, dry_run=False),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("said", "calls"), CALLS.items(), ids=CALLS)
def test_what_is_of_the_wrong_kind_is_refused(said, calls):
    async def scenario(host, run):
        for call in calls:
            with pytest.raises(UsageError) as caught:
                await call(host, run)
            assert str(caught.value) == said

    play(scenario)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((1, None), "the tenant of a scope is a text, not 1"),
        ((None,), "the tenant of a scope is a text, not None"),
        (("app", 7), "the user of a scope is a text, not 7"),
    ],
)
def test_a_scope_names_a_tenant_and_perhaps_a_user(names, said):
    with pytest.raises(UsageError) as caught:
        Scope(*names)
    assert str(caught.value) == said
    assert "weft.Scope(" in caught.value.hint


def test_what_is_left_out_is_no_fault():
    async def scenario(host, run):
        return await host.state(run, scope=Scope("app"), at=None)

    assert play(scenario).workflow == "W"
