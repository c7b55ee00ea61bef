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
    return [event async for event in events]


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
    "turn must be a number from 0 on, not '1'": [
        lambda host, run: host.fork(run, scope=ADA, turn="1"),
    ],
    "at must be a number from 0 on, not '1'": [
        lambda host, run: host.state(run, scope=ADA, at="1"),
    ],
    "at must be a number from 0 on, not -1": [lambda host, run: host.state(run, scope=ADA, at=-1)],
    "after must be a number from 0 on, not True": [
        lambda host, run: listed(host.events(run, scope=ADA, after=True)),
    ],
    "limit must be a number from 0 on, not 2.5": [lambda host, _: host.runs(scope=ADA, limit=2.5)],
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
def test_wrong_kind_is_refused(said, calls):
    async def scenario(host, run):
        for call in calls:
            with pytest.raises(UsageError) as caught:
                await call(host, run)
            assert str(caught.value) == said

    play(scenario)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((1, "ada"), "the tenant of a scope is a text, not 1"),
        ((None, "ada"), "the tenant of a scope is a text, not None"),
        (("app", None), "the user of a scope is a text, not None"),
        (("app", 7), "the user of a scope is a text, not 7"),
    ],
)
def test_scope_names_a_tenant_and_a_user(names, said):
    with pytest.raises(UsageError) as caught:
        Scope(*names)
    assert str(caught.value) == said
    assert "weft.Scope(" in caught.value.hint


def test_scope_of_all_users_is_made_by_operator_only():
    with pytest.raises(TypeError):
        Scope("app")
    with pytest.raises(UsageError, match="the tenant of a scope is a text, not None"):
        Scope.operator(None)
    operator = Scope.operator("app")
    assert (operator.app, operator.user, operator.addresses) == ("app", None, ())
    assert operator == Scope.operator("app") != Scope("app", "")
    assert operator.covers("app", "ada")
    assert not operator.covers("other", "ada")


def test_omitted_parts_are_not_an_error():
    async def scenario(host, run):
        return await host.state(run, scope=Scope.operator("app"), at=None)

    assert play(scenario).workflow == "W"
