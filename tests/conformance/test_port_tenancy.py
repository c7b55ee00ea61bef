"""Every method of every port, called for another tenant and for another user of the same tenant."""

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import weft.ports
from support.service_play import Service
from weft.adapters.documents.sqlite import SqliteDocuments
from weft.adapters.files import WorkspaceFiles
from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.mcp import servers
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.memory import MemoryStore
from weft.adapters.services.http_services import HttpServices
from weft.adapters.sql import SqliteStore
from weft.adapters.system_clock import SystemClock
from weft.adapters.vault import MemoryVault
from weft.app.collections import Collections, open_collections
from weft.engine.events import TurnStarted
from weft.engine.rows import Snapshot
from weft.errors import PortError, StoreConflict
from weft.ports.documents import Collection
from weft.ports.external import ServiceRequest, ToolServer
from weft.ports.live import TextDelta
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.ports.vault import SecretAnswer
from weft.runtime.board.reading import owners_of
from weft.testing.store.board_samples import BOARD, BoardRun, published, query
from weft.testing.store.samples import ME, SampleRun, mail

ANN = Scope("shop", "ann")
RUN = ("shop", "r1")
ORDERS = Collection("Orders")
DELTA = TextDelta("r1", 1, 0, "a secret")
SNAPSHOT = Snapshot(1, "1", "digest-1", b"state")

ANOTHER_TENANT = Scope("bank", "ann")
ANOTHER_USER = Scope("shop", "bob", roles=("clerk",))


@dataclass
class World:
    """The ports of a host, each with something of Ann's."""

    store: Store
    documents: SqliteDocuments
    services: HttpServices
    service: Service
    files: WorkspaceFiles
    servers: McpToolServers
    collections: Collections
    live: MemoryLiveStream
    vault: MemoryVault

    def request(self) -> ServiceRequest:
        return ServiceRequest("s", "o", self.service.url("/"), cache=60)


@pytest.fixture(params=["memory", "sqlite"])
def opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[], Any]:
    """Open the ports of a host, with something of Ann's in each."""
    # A connection that tells for whom it was opened stands for a server that was started.
    monkeypatch.setattr(servers, "_load", lambda: OpenedFor)
    return lambda: open_world(tmp_path, in_memory=request.param == "memory")


@asynccontextmanager
async def open_world(workspace: Path, *, in_memory: bool) -> AsyncIterator[World]:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(Service(1))
        file = workspace / "store.db"
        store = MemoryStore(clock) if in_memory else await SqliteStore.open(file, clock=clock)
        documents = await SqliteDocuments.open(":memory:")
        ports = World(
            store,
            documents,
            HttpServices(clock, frozenset({service.place})),
            service,
            WorkspaceFiles(workspace),
            McpToolServers(clock=clock, environment={}),
            open_collections(workspace, environment={"WEFT_EMBEDDINGS": "none"}),
            MemoryLiveStream(),
            MemoryVault(),
        )
        for port in (store, documents, ports.services, ports.collections, ports.live):
            stack.push_async_callback(port.close)
        await fill(ports, workspace)
        yield ports


class OpenedFor:
    """A connection to a tool server that returns the tenants that have used it."""

    def __init__(self, server: ToolServer, *_: object, **_options: object) -> None:
        self.used_by: list[str] = []
        self.usable = True
        self.owner = self

    def add_done_callback(self, _: object) -> None: ...

    async def tools(self) -> list[str]:
        return self.used_by

    async def call(self, tool: str, *_: object) -> list[str]:
        self.used_by.append(tool)
        return self.used_by[:-1]


async def fill(world: World, workspace: Path) -> None:
    store = world.store
    run = SampleRun("r1", name="c1")
    changes = [run.request("q1"), run.carried("plan", "gold")]
    await store.append(
        run.batch(changes=changes, package=b"package", due_at=1)._replace(held=True), owner=ME
    )
    done = SampleRun("r2", workflow="Done")
    await store.append(done.batch(status="ended", at=5), owner=ME)
    board = BoardRun("r3", owner="user:ann")
    published_ = published(1, id="a1")
    await store.append(board.writing(published_, TurnStarted("Ann", inputs=("a1",))), owner=ME)
    await store.save_snapshot("shop", "r1", SNAPSHOT)
    await store.put(mail("r1", "m1"))
    await world.documents.put(ANN, ORDERS, {"_id": "a"}, {"n": 1})
    await world.services.ask(ANN, world.request())
    (workspace / "apps/shop").mkdir(parents=True)
    (workspace / "apps/shop/prices.md").write_text("secret prices")
    await world.servers.call(server(ANN), "ann", {})
    await world.collections.add_texts("Terms", {"t": "secret terms"}, app="shop")
    await world.vault.put(RUN, "q1", SecretAnswer("x", ("x",)))
    await store.add_record("shop", "key", "k1", {"of": "ann"})


def server(scope: Scope) -> ToolServer:
    return ToolServer(scope.app, "s", url="http://127.0.0.1:1/")


async def listed(items: AsyncIterator[object]) -> list[object]:
    return [item async for item in items]


async def followed(world: World, scope: Scope) -> list[object]:
    async for event in world.store.follow(scope, "r1"):
        return [event]
    return []


async def pruned(world: World, scope: Scope) -> int:
    return (await world.store.prune(scope, ended_before=1 << 50, dry_run=True)).runs


async def asked_again(world: World, scope: Scope) -> bool:
    """Whether the service is not asked, because its answer is known."""
    return (await world.services.ask(scope, world.request())).cached


async def read_file(world: World, scope: Scope) -> str:
    try:
        return await world.files.read(scope.app, "Desk", "prices.md")
    except PortError:
        return ""


async def searched(world: World, scope: Scope) -> bool:
    return world.collections.adapter(scope.app, "Terms") is not None


async def collection_names(world: World, scope: Scope) -> list[str]:
    return world.collections.names(scope.app)


async def watched(world: World, scope: Scope) -> list[object]:
    """Return the first change that the scope sees, unless it is one of its own."""
    async with aclosing(world.documents.watch(scope, ORDERS)) as changes:
        first = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.05)
        await world.documents.put(ANN, ORDERS, {"_id": "b"}, {"n": 2})
        await world.documents.put(scope, ORDERS, {"_id": "own"}, {"n": 3})
        change = await asyncio.wait_for(first, 5)
    return [] if change.key == "own" else [change]


async def received(world: World, scope: Scope) -> list[object]:
    got: list[object] = []
    with world.live.subscribe((scope.app, "r1"), got.append):
        world.live.publish(RUN, DELTA)
    return got


async def has_subscribers(world: World, scope: Scope) -> bool:
    with world.live.subscribe(RUN, print):
        return world.live.has_subscribers((scope.app, "r1"))


async def artifacts(world: World, scope: Scope) -> list[object]:
    page = await world.store.artifacts(query(app=scope.app, owners=owners_of(scope)))
    return list(page.items)


Case = Callable[[World, Scope], Awaitable[object]]

#: What is read for a tenant and a user: nothing of Ann's for another tenant or another user.
BY_USER: dict[str, Case] = {
    "EventLog.read": lambda world, scope: world.store.read(scope, "r1"),
    "EventLog.follow": followed,
    "EventLog.prune": pruned,
    "RunIndex.run": lambda world, scope: world.store.run(scope, "r1"),
    "RunIndex.runs": lambda world, scope: world.store.runs(scope),
    "RunIndex.requests": lambda world, scope: world.store.requests(scope),
    "RunIndex.carried": lambda world, scope: world.store.carried(scope, "Support"),
    "RunIndex.completed": lambda world, scope: world.store.completed(scope, ["Done"]),
    "BoardIndex.artifacts": artifacts,
    "BoardIndex.consumed": lambda world, scope: world.store.consumed(
        scope.app, BOARD, owners=owners_of(scope)
    ),
}

#: What belongs to a tenant: the runtime asks for it with the tenant of a row or a scope.
BY_TENANT: dict[str, Case] = {
    "EventLog.snapshot": lambda world, scope: world.store.snapshot(scope.app, "r1"),
    "EventLog.package": lambda world, scope: world.store.package(scope.app, "digest-1"),
    "WorkQueue.take": lambda world, scope: world.store.take("w2", scope.app, "r1", force=True),
    "MailBox.pending": lambda world, scope: world.store.pending(scope.app, "r1"),
    "RunIndex.named": lambda world, scope: world.store.named(scope.app, "c1"),
    "RunIndex.open_run": lambda world, scope: world.store.open_run(scope.app, "c1"),
    "Records.record": lambda world, scope: world.store.record(scope.app, "key", "k1"),
    "Records.records": lambda world, scope: world.store.records(scope.app, "key"),
    "Documents.find": lambda world, scope: world.documents.find(scope, ORDERS, {"_id": "a"}),
    "Documents.find_many": lambda world, scope: world.documents.find_many(
        scope, ORDERS, {"_id": "a"}
    ),
    "Documents.page": lambda world, scope: world.documents.page(scope, ORDERS),
    "Documents.collections": lambda world, scope: world.documents.collections(scope),
    "Documents.watch": watched,
    "Documents.delete": lambda world, scope: world.documents.delete(scope, ORDERS, "a"),
    "Services.ask": asked_again,
    "Files.read": read_file,
    "ToolServers.tools": lambda world, scope: world.servers.tools(server(scope)),
    "ToolServers.call": lambda world, scope: world.servers.call(server(scope), "x", {}),
    "Retrievers.adapter": searched,
    "Retrievers.names": collection_names,
    "LiveStream.subscribe": received,
    "LiveStream.has_subscribers": has_subscribers,
    "Vault.get": lambda world, scope: world.vault.get((scope.app, "r1"), ""),
}


async def append(world: World, scope: Scope) -> None:
    run = SampleRun("r1", app=scope.app, user=scope.user or "")
    await world.store.append(run.batch(), owner="w2")


async def put(world: World, scope: Scope) -> None:
    with pytest.raises(StoreConflict):
        await world.store.put(mail("r1", "m2", app=scope.app))


async def publish_to(world: World, scope: Scope) -> None:
    got: list[object] = []
    with world.live.subscribe(RUN, got.append):
        world.live.publish((scope.app, "r1"), replace(DELTA, text="forged"))
    assert got == []


#: What is written: it changes nothing of Ann's.
WRITING: dict[str, Case] = {
    "EventLog.append": append,
    "EventLog.save_snapshot": lambda world, scope: world.store.save_snapshot(
        scope.app, "r1", replace_content(b"other")
    ),
    "WorkQueue.release": lambda world, scope: world.store.release(ME, [(scope.app, "r1")]),
    "MailBox.put": put,
    "Records.add_record": lambda world, scope: world.store.add_record(
        scope.app, "key", "k1", {"of": "eve"}
    ),
    "Records.put_record": lambda world, scope: world.store.put_record(
        scope.app, "key", "k1", {"of": "eve"}
    ),
    "Records.delete_record": lambda world, scope: world.store.delete_record(scope.app, "key", "k1"),
    "Documents.put": lambda world, scope: world.documents.put(
        scope, ORDERS, {"_id": "a"}, {"n": 9}
    ),
    "LiveStream.publish": publish_to,
    "Vault.put": lambda world, scope: world.vault.put(
        (scope.app, "r1"), "q1", SecretAnswer("y", ())
    ),
    "Vault.drop": lambda world, scope: world.vault.drop((scope.app, "r1")),
}


def replace_content(content: bytes) -> Snapshot:
    return SNAPSHOT._replace(content=content)


_CODE = "the code of a package, which is the same for all tenants; a call carries its tenant"
_CLOSES = "it closes the port"
_SENDER = "for the sender of all webhooks: an event has its tenant"
_WORKERS = "for workers, which work for all tenants: it returns keys that have the tenant"

#: Methods without anything of a tenant, each with the reason.
WITHOUT_TENANT = {
    "Clock.now": "time", "Clock.new_id": "identities", "Clock.sleep_until": "time",
    "Documents.close": _CLOSES, "Services.close": _CLOSES, "ToolServers.close": _CLOSES,
    "Retrievers.close": _CLOSES, "Embedder.close": _CLOSES, "LiveStream.close": _CLOSES,
    "Signal.close": _CLOSES, "Store.close": _CLOSES,
    "Model.reply": "stores nothing; keys and limits: tests/behaviour/test_tenants.py",
    "Embedder.embed": "stores nothing",
    "VectorSearchAdapter.search": "the adapter belongs to the tenant it was asked for",
    "Signal.notify": "the name of a worker", "Signal.listen": "the name of a worker",
    "WorkQueue.claim": _WORKERS, "WorkQueue.beat": _WORKERS, "WorkQueue.next_due": _WORKERS,
    "WorkQueue.rename": _WORKERS, "WorkQueue.wait": _WORKERS,
    "WorkQueue.workload": "for operators of the store: counts",
    "RunIndex.apps": "for the operator of the store: the names of all tenants",
    "Outbox.take_outgoing": _SENDER, "Outbox.postpone_outgoing": _SENDER,
    "Outbox.remove_outgoing": _SENDER,
    "Documents.position": "a place in the order of changes, without anything of a document",
    "VariableAccess.get": _CODE, "VariableAccess.set": _CODE, "VariableAccess.remove": _CODE,
    "VariableAccess.restart": _CODE, "VariableAccess.to_dict": _CODE,
    "Tools.schema": _CODE, "Tools.validation_error": _CODE, "Tools.call": _CODE,
    "ToolLoader.load": _CODE, "ToolLoader.objects": _CODE, "ToolLoader.unload": _CODE,
    "ToolLoader.close": _CLOSES,
}  # fmt: skip


def port_methods() -> set[str]:
    """Return every method of every protocol in `weft.ports`."""
    found: set[str] = set()
    for module in pkgutil.iter_modules(weft.ports.__path__, "weft.ports."):
        for name, port in vars(importlib.import_module(module.name)).items():
            is_port = inspect.isclass(port) and getattr(port, "_is_protocol", False)
            if is_port and port.__module__ == module.name:
                methods = (item for item, value in vars(port).items() if inspect.isfunction(value))
                found |= {f"{name}.{method}" for method in methods if not method.startswith("_")}
    return found


def test_every_method_of_a_port_has_a_case():
    cases = [*BY_USER, *BY_TENANT, *WRITING, *WITHOUT_TENANT]
    assert len(cases) == len(set(cases))
    assert port_methods() == set(cases)


#: Reading by these changes what is read.
CHANGING = {"WorkQueue.take", "Documents.watch", "Documents.delete", "ToolServers.call"}

ELSEWHERE = {"a user": ANOTHER_TENANT, "the operator": Scope.operator("bank")}


@pytest.mark.parametrize("name", [*BY_USER, *BY_TENANT])
async def test_owner_finds_what_strangers_do_not(opened, name):
    """The cases would notice a result: they have one for the owner."""
    async with opened() as world:
        assert await {**BY_USER, **BY_TENANT}[name](world, ANN)


@pytest.mark.parametrize("name", [*BY_USER, *BY_TENANT])
@pytest.mark.parametrize("who", ELSEWHERE)
async def test_another_tenant_finds_nothing(opened, name, who):
    async with opened() as world:
        assert not await {**BY_USER, **BY_TENANT}[name](world, ELSEWHERE[who])


@pytest.mark.parametrize("name", BY_USER)
async def test_another_user_of_the_tenant_finds_nothing(opened, name):
    async with opened() as world:
        assert not await BY_USER[name](world, ANOTHER_USER)


@pytest.mark.parametrize("name", WRITING)
async def test_another_tenant_changes_nothing(opened, name):
    reading = {**BY_USER, **BY_TENANT}
    unchanging = [case for case in reading if case not in CHANGING]
    async with opened() as world:
        before = {case: await reading[case](world, ANN) for case in unchanging}
        await WRITING[name](world, ANOTHER_TENANT)
        assert {case: await reading[case](world, ANN) for case in unchanging} == before
