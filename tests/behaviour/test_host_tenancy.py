"""Every method of a host, called for another tenant and for another user of the same tenant."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from weft.engine.events.codec import encode
from weft.errors import AccessDenied, NotFoundError, UsageError
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing import FunctionModel, ManualClock, host_for

ADA = Scope("shop", "ada")
STRANGERS = {
    "another tenant": Scope("bank", "ada"),
    "the operator of another tenant": Scope.operator("bank"),
    "another user": Scope("shop", "bob"),
    "another user with a role": Scope("shop", "bob", roles=("clerk",), groups=("desk",)),
}

#: One workflow that is a chat, and one that is a board.
CHAT = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
        "agents": [{"agent_name": "A"}],
        "handoffs": [{"source_agent": "A", "target_agent": "user"}],
    }
)
NOTE = {"name": "Note", "schema": {"type": "object"}}
CONSUMES = [{"types": ["Note"], "batch": {"size": 9}}]
BOARD = WorkflowSpec.model_validate(
    {
        "orchestrator": {"workflow_name": "W"},
        "agents": [{"agent_name": "A"}],
        "board": {
            "artifacts": [NOTE],
            "agents": [
                {"agent": "A", "consumes": CONSUMES},
                {
                    "agent": "B",
                    "schedule": {"every_seconds": 3600},
                    "publishes": [{"type": "Note"}],
                },
            ],
        },
    }
)


class Found:
    """What a stranger tries to reach: a run of Ada's, its request, and an artifact of it."""

    def __init__(
        self, run: str, request: str = "", artifact: str = "", correlation: str = ""
    ) -> None:
        self.run, self.request, self.artifact = run, request, artifact
        self.correlation = correlation


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


async def items_of(page: Awaitable[Any]) -> list[Any]:
    return list((await page).items)


async def first_page(host: Host, scope: Scope) -> list[Any]:
    """Return the first page of a board that is followed, or nothing if the follower waits."""
    async with aclosing(host.follow_board("W", scope=scope, reader=None, after=None)) as pages:
        first = asyncio.ensure_future(anext(pages))
        for _ in range(200):  # The store is in memory: nothing takes longer than a few rounds.
            await asyncio.sleep(0)
        if first.done():
            return first.result().items
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return []


async def pruned(host: Host, scope: Scope) -> tuple[int, int, int]:
    found = await host.prune(scope=scope, ended_before=1 << 50, dry_run=False)
    return found.runs, found.events, found.bytes


Case = Callable[[Host, Found, Scope], Awaitable[object]]

#: Each returns or raises what a stranger gets.
CHAT_CASES: dict[str, Case] = {
    "run": lambda host, row, scope: host.run(row.run, scope=scope),
    "runs": lambda host, _, scope: host.runs(scope=scope),
    "requests": lambda host, item, scope: host.requests(scope=scope),
    "events": lambda host, row, scope: listed(host.events(row.run, scope=scope)),
    "state": lambda host, row, scope: host.state(row.run, scope=scope),
    "workflow": lambda host, row, scope: host.workflow(row.run, scope=scope),
    "settled": lambda host, row, scope: host.settled(row.run, scope=scope),
    "idle": lambda host, row, scope: host.idle(row.run, scope=scope),
    "settled_state": lambda host, row, scope: host.settled_state(row.run, scope=scope),
    "deliver": lambda host, row, scope: host.deliver(row.run, UserMessage("hello"), scope=scope),
    "fork": lambda host, row, scope: host.fork(row.run, scope=scope, turn=1),
    "resume": lambda host, row, scope: host.resume(row.run, scope=scope, take_over=True),
    "prune": lambda host, _, scope: pruned(host, scope),
    "wake": lambda host, row, scope: host.wake(row.run, scope=scope),
    "was_closed": lambda host, event, scope: host.was_closed(
        event.run, Answer(event.request, "x"), scope=scope
    ),
}
BOARD_CASES: dict[str, Case] = {
    "artifacts": lambda host, _, scope: host.artifacts("W", scope=scope),
    "artifact": lambda host, item, scope: host.artifact("W", item.artifact, scope=scope),
    "consumed": lambda host, _, scope: host.consumed("W", scope=scope),
    "why": lambda host, item, scope: host.why("W", item.artifact, "A", scope=scope),
    "artifact_page": lambda host, _, scope: items_of(
        host.artifact_page("W", scope=scope, reader=None, limit=9)
    ),
    "board_changes": lambda host, _, scope: items_of(
        host.board_changes("W", scope=scope, reader=None, after=None, limit=9)
    ),
    "follow_board": lambda host, _, scope: first_page(host, scope),
    "flush": lambda host, row, scope: host.flush(row.run, scope=scope),
    "run_of": lambda host, item, scope: host.run_of("W", item.correlation, scope=scope),
}
#: Variants of a method that has a case.
MORE_CASES: dict[str, Case] = {
    "answer": lambda host, event, scope: host.deliver(
        event.run, Answer(event.request, "x"), scope=scope
    ),
    "stop": lambda host, row, scope: host.deliver(row.run, Stop(), scope=scope),
    "follow": lambda host, row, scope: listed(host.events(row.run, scope=scope, follow=True)),
    "requests of a run": lambda host, row, scope: host.requests(scope=scope, run=row.run),
    "runs before": lambda host, row, scope: host.runs(scope=scope, before=row.run),
}
#: They make something of the stranger's own; a test below says that it is not Ada's.
MAKING = {"start", "publish", "start_schedules", "add_ended"}
#: They have the tenant itself in place of a scope; a test below asks for another tenant.
OF_TENANT = {"current_workflow", "environment_of", "package"}
#: They have no scope: nothing of a tenant goes in or comes out, except for the operator's `apps`.
#: The ports `documents`, `outbox`, `records` and `retrievers` are asked for a tenant each time, and
#: the code of a workflow is that of a tenant, or of all.
WITHOUT_SCOPE = {
    "apps", "busy", "changed", "changed_or_quiet", "close", "documents", "drain", "find", "new_id",
    "newest_change",
    "objects", "observe", "on_close", "outbox", "owner", "packed_workflow", "quiet", "records",
    "recover", "retrievers", "runs_in_use", "webhooks", "workload",
}  # fmt: skip


def public_methods() -> dict[str, Any]:
    return {name: item for name, item in inspect.getmembers(Host) if not name.startswith("_")}


def test_every_method_of_a_host_has_a_case():
    cases = {*CHAT_CASES, *BOARD_CASES, *MAKING}
    methods = public_methods()
    assert {*methods} == cases | OF_TENANT | WITHOUT_SCOPE
    scoped = {
        name
        for name, method in methods.items()
        if callable(method) and "scope" in inspect.signature(method).parameters
    }
    assert scoped == cases
    of_tenant = {
        name
        for name, method in methods.items()
        if callable(method) and "app" in inspect.signature(method).parameters
    }
    assert of_tenant == OF_TENANT


def test_no_scope_is_left_out():
    for name in {*CHAT_CASES, *BOARD_CASES, *MAKING}:
        scope = inspect.signature(public_methods()[name]).parameters["scope"]
        assert scope.default is inspect.Parameter.empty, name


@asynccontextmanager
async def hosted(spec: WorkflowSpec) -> AsyncGenerator[tuple[Host, Found]]:
    """Open a host with something of Ada's, which is in the log of changes already."""
    clock = ManualClock()
    outside = ExternalPorts(environment_of=secrets_of)
    model = FunctionModel(lambda _: "What else?")
    async with host_for(spec, model, clock=clock, outside=outside) as host:
        found = await begin(host, spec)
        await clock.advance(2)
        yield host, found


def secrets_of(app: str) -> Mapping[str, str]:
    return {"TOKEN": "a secret of Ada's"} if app == "shop" else {}


async def begin(host: Host, spec: WorkflowSpec) -> Found:
    if spec is CHAT:
        run = await host.start("W", scope=ADA, message="a secret of Ada's")
        await host.settled(run, scope=ADA)
        [request] = await host.requests(scope=ADA)
        return Found(run, request.id)
    made = await host.publish("W", "Note", {"text": "a secret of Ada's"}, scope=ADA)
    await host.quiet()
    return Found(made.run, artifact=made.id, correlation=made.correlation_id)


async def history(host: Host, found: Found) -> list[bytes]:
    return [encode(event.data) for event in await listed(host.events(found.run, scope=ADA))]


def got_nothing(result: object) -> bool:
    """Whether a result has nothing of Ada's: an empty list, False, or numbers that are all zero."""
    if isinstance(result, tuple):
        return not any(bool(part) for part in result)
    return result in ([], None, False)


async def denied(case: Case, host: Host, found: Found, scope: Scope) -> None:
    try:
        result = await asyncio.wait_for(case(host, found, scope), 5)
    except (AccessDenied, UsageError) as error:
        text = f"{error} {getattr(error, 'hint', '')}".lower()
        assert "there is no" in text
        assert "ada" not in text.replace(found.run, "")
        return
    assert got_nothing(result), result


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize(
    ("spec", "name"),
    [
        *((CHAT, name) for name in (*CHAT_CASES, *MORE_CASES)),
        *((BOARD, name) for name in (*BOARD_CASES, *CHAT_CASES)),
    ],
    ids=lambda item: item if isinstance(item, str) else "chat" if item is CHAT else "board",
)
async def test_stranger_reaches_nothing(spec, name, stranger):
    case = {**CHAT_CASES, **BOARD_CASES, **MORE_CASES}[name]
    async with hosted(spec) as (host, found):
        before = await history(host, found)
        await denied(case, host, found, STRANGERS[stranger])
        await host.quiet()
        assert await history(host, found) == before


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        *((CHAT, name) for name in ("run", "runs", "requests", "events", "state", "settled")),
        *((BOARD, name) for name in ("artifacts", "artifact", "run", "runs", "events")),
        *((BOARD, name) for name in ("artifact_page", "board_changes", "follow_board")),
    ],
)
@pytest.mark.parametrize("scope", [ADA, Scope.operator("shop")], ids=["the user", "the operator"])
async def test_user_and_operator_reach_what_strangers_do_not(spec, name, scope):
    """The cases would notice a result: they have one for those who may see it."""
    async with hosted(spec) as (host, found):
        assert not got_nothing(await {**CHAT_CASES, **BOARD_CASES}[name](host, found, scope))


@pytest.mark.parametrize("stranger", ["another tenant", "another user"])
async def test_objects_of_a_stranger_belong_to_them(stranger):
    scope = STRANGERS[stranger]
    async with hosted(CHAT) as (host, found):
        run = await host.start("W", scope=scope, message="mine")
        await host.settled(run, scope=scope)
        with pytest.raises(AccessDenied):
            await host.run(run, scope=ADA)
        assert [row.run for row in await host.runs(scope=ADA)] == [found.run]


async def test_another_tenant_has_neither_the_package_nor_the_secrets():
    async with hosted(CHAT) as (host, found):
        digest = (await host.run(found.run, scope=ADA)).digest
        assert await host.package(digest, app="shop")
        assert host.environment_of("shop")["TOKEN"]
        with pytest.raises(NotFoundError, match="no run was started with the package"):
            await host.package(digest, app="bank")
        assert "TOKEN" not in host.environment_of("bank")


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_events_of_others_cannot_be_added(stranger):
    async with hosted(CHAT) as (host, found):
        await host.deliver(found.run, Stop("now"), scope=ADA)
        events = await listed(host.events(found.run, scope=ADA))
        workflow = await host.workflow(found.run, scope=ADA)
        with pytest.raises(UsageError, match="those of another tenant or user"):
            await host.add_ended(workflow, "copy", events, scope=STRANGERS[stranger])
        assert await host.apps() == ["shop"]
