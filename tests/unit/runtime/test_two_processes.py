"""Two hosts on one file stand for two processes: the faults that the store must cure."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from support.boundary_play import declared, derived
from support.run_play import ADA
from support.stopping_store import LaterClock, StoppingStore, work_until_stopped
from weft.adapters.live.merged import MergedLiveStream
from weft.adapters.sql import SqliteStore
from weft.adapters.vault import EncryptedVault
from weft.cli.pages.events import summary
from weft.engine.events import Event, ToolReturned
from weft.errors import UsageError
from weft.ports.live import TextDelta
from weft.ports.scope import Scope
from weft.runtime.runs.writer import SNAPSHOT_EVENTS
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.runtime.workflow import Linking
from weft.spec.workflow import WorkflowSpec
from weft.testing import FunctionModel, ScriptedModel, call, host_for
from weft.testing.clock import ManualClock

APP = Scope.operator("app")
BOARD = "Board"


class CountingStore:
    """Counts the calls of each method."""

    def __init__(self, store):
        self._store = store
        self.calls = Counter()
        #: After which event each read of events began.
        self.reads = []

    def __getattr__(self, name):
        self.calls[name] += 1
        return getattr(self._store, name)

    async def read(self, scope, run, *, after=0, limit=None):
        self.calls["read"] += 1
        self.reads.append(after)
        return await self._store.read(scope, run, after=after, limit=limit)


class LocalBus:
    """A bus between the streams of one test."""

    limit = 8000

    def __init__(self, listeners):
        self._listeners = listeners

    def send(self, topic, content):
        for receive in self._listeners.get(topic, ()):
            asyncio.get_running_loop().call_soon(receive, content)

    def listen(self, topic, receive):
        self._listeners.setdefault(topic, []).append(receive)

    async def close(self):
        pass


def board(scope="correlation"):
    engine = {"kind": "function", "function": "local:work"}
    consumes = [{"types": ["Idea"], "scope": scope}]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": BOARD},
            "agents": [{"agent_name": "Ann"}],
            "board": {
                "artifacts": [{"name": "Idea", "schema": {"type": "object"}}],
                "agents": [{"agent": "Ann", "engines": [engine], "consumes": consumes}],
            },
        }
    )


def chat():
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A", "max_turns": 500},
            "agents": [{"agent_name": "A"}],
            "handoffs": [{"source_agent": "A", "target_agent": "user"}],
        }
    )


def board_host(store, handled, **options):
    def work(inputs):
        handled.extend(artifact.id for artifact in inputs.artifacts)

    spec = board(options.pop("scope", "correlation"))
    linking = Linking(objects={"local:work": work})
    return host_for(spec, ScriptedModel([]), store=store, linking=linking, **options)


@asynccontextmanager
async def two_hosts(spec, model, path, *, code=None, **gateway_options):
    """Open a gateway and a worker on one file."""
    here, there = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    counting = CountingStore(here)
    options = {"code": code} if code else {}
    gateway = host_for(spec, model, store=counting, works=False, **options, **gateway_options)
    worker = host_for(spec, model, store=there, **options)
    async with gateway, worker:
        await worker.recover()
        yield gateway, worker, counting


async def until(condition, seconds=10):
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)


async def test_pruning_an_ended_run_does_not_split_its_name(tmp_path):
    """S1: after a prune the next artifact goes to the open run of its correlation."""
    handled = []
    store = CountingStore(await SqliteStore.open(tmp_path / "store.db", durability="normal"))
    async with board_host(store, handled) as host:

        async def publish(number):
            made = await host.publish(BOARD, "Idea", {"n": number}, scope=ADA, correlation="c")
            await host.quiet()
            return made.run

        first = await publish(1)
        await host.deliver(first, Stop("now"), scope=ADA)
        second = await publish(2)
        assert second != first
        pruned = await host.prune(scope=APP, ended_before=1 << 60, dry_run=False)
        assert pruned.runs == 1
        for number in range(3, 33):
            assert await publish(number) == second
        store.calls.clear()
        await publish(33)
        assert store.calls["runs"] == store.calls["read"] == 0, "the name finds the run"
        assert len(await host.runs(scope=ADA)) == 1
    assert len(handled) == 33


@pytest.mark.parametrize("scope", ["correlation", "all"])
async def test_an_artifact_that_a_gateway_delays_is_delivered(tmp_path, scope):
    """S2: the worker attends to every run that is due, whichever process wrote the time."""
    handled = []
    path = tmp_path / "store.db"
    here, there = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    gateway = board_host(here, handled, works=False, scope=scope)
    worker = board_host(there, handled, scope=scope)
    async with gateway, worker:
        await worker.recover()
        later = {"kind": "after", "seconds": 0.5, "then": {"kind": "public"}}
        made = await gateway.publish(
            BOARD, "Idea", {}, scope=ADA, correlation="c", visibility=later
        )
        await until(lambda: _is_handled(handled), 5)
    assert handled == [made.id]


async def _is_handled(handled):
    return bool(handled)


@pytest.mark.parametrize("works", [(True, True), (False, True), (False, False)])
async def test_an_id_that_two_processes_publish_counts_once(tmp_path, works):
    """S4: each artifact is there once and handled once."""
    handled = []
    path = tmp_path / "store.db"
    stores = [await SqliteStore.open(path, durability="normal") for _ in range(3)]
    hosts = [
        board_host(store, handled, works=is_working)
        for store, is_working in zip(stores, (*works, True), strict=True)
    ]
    ids = [f"id{number}" for number in range(12)]
    async with hosts[0], hosts[1], hosts[2]:
        await hosts[2].recover()

        async def publish(host, id_):
            payload = {"from": hosts.index(host)}
            return await host.publish(BOARD, "Idea", payload, scope=ADA, correlation="c", id=id_)

        made = await asyncio.gather(*(publish(host, id_) for id_ in ids for host in hosts[:2]))
        assert len({publication.run for publication in made}) == 1
        await until(lambda: _count(handled, len(ids)))
        await asyncio.sleep(0.2)
        again = [await publish(host, id_) for id_ in ids for host in hosts[:2]]
        assert {publication.run for publication in again} == {made[0].run}
        found, total = await hosts[2].artifacts(BOARD, scope=ADA)
        assert len(await hosts[2].runs(scope=ADA)) == 1
    assert (sorted(artifact.id for artifact in found), total) == (sorted(ids), len(ids))
    assert sorted(handled) == sorted(ids)


class Recorded:
    """A store that notes the batches of runs that go on."""

    def __init__(self, store):
        self._store = store
        self.held = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, batch, *, owner):
        if batch.row.status == "running":
            self.held.append(batch.held)
        return await self._store.append(batch, owner=owner)


async def test_run_is_held_while_the_rest_of_its_mail_is_taken(tmp_path, monkeypatch):
    """S9: effects that were decided and have not begun keep the run."""
    monkeypatch.setattr("weft.runtime.runs.writer.MAIL_PAGE", 2)
    handled = []
    path = tmp_path / "store.db"
    there, here = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    recorded = Recorded(here)
    gateway, worker = board_host(there, handled, works=False), board_host(recorded, handled)
    async with gateway, worker:
        for number in range(12):
            await gateway.publish(BOARD, "Idea", {"n": number}, scope=ADA, correlation="c")
        await worker.recover()
        await until(lambda: _count(handled, 12))
        await worker.quiet()
    assert len(recorded.held) > 6
    assert all(recorded.held)


async def _count(handled, number):
    return len(handled) >= number


async def test_of_a_stalled_owner_and_its_successor_one_writes_the_result(tmp_path):
    """S9: the late result of a process that has lost its run is refused."""
    release = asyncio.Event()

    async def stalled(_request):
        await release.wait()
        return "from the stalled process"

    path = tmp_path / "store.db"
    stores = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    first = host_for(chat(), FunctionModel(stalled), store=stores[0])
    second = host_for(chat(), FunctionModel(lambda _: "from the successor"), store=stores[1])
    async with first, second:
        run = await first.start("W", scope=ADA, message="hi")
        await asyncio.sleep(0.05)
        await second.resume(run, scope=ADA, take_over=True)
        await second.settled(run, scope=ADA)
        release.set()
        await asyncio.sleep(0.1)
        state = await second.state(run, scope=ADA)
        assert [message.text for message in state.messages] == ["hi", "from the successor"]
        events = await stores[1].read(APP, run)
        assert await first._store.read(APP, run) == events


PAY = {"tool_type": "Agent_Tool", "agent": "A", "file": "pay.py", "function": "pay"}
PAID = """
from asyncio import sleep
from pathlib import Path


async def pay() -> str:
    with Path("{folder}/calls").open("a") as calls:
        calls.write("call\\n")
    while not Path("{folder}/open").exists():
        await sleep(0.01)
    return "paid"
"""


class PausedStore(CountingStore):
    """Sends no heartbeat while its process is paused."""

    def __init__(self, store):
        super().__init__(store)
        self.continued = asyncio.Event()

    async def beat(self, owner):
        await self.continued.wait()
        return await self._store.beat(owner)


@pytest.mark.parametrize("is_paused", [True, False])
async def test_call_that_a_successor_repeats_is_in_the_history_and_logged(
    tmp_path, caplog, is_paused
):
    clock, calls = ManualClock(), tmp_path / "calls"
    spec, code = declared(tools=[PAY]), {"tools/pay.py": PAID.format(folder=tmp_path).encode()}
    model = FunctionModel(lambda request: call("pay") if request.call == 1 else "done")
    opened = [await SqliteStore.open(tmp_path / "s.db", clock=clock) for _ in range(2)]
    stores = PausedStore(opened[0]), opened[1]
    hosts = [host_for(spec, model, code=code, store=store, clock=clock) for store in stores]
    async with hosts[0] as first, hosts[1] as second:
        run, owner = await first.start("W", scope=ADA, message="hi"), first.owner
        await until(lambda: _has_lines(calls, 1))
        if is_paused:
            await clock.advance(6)
            await second.recover()
        else:
            await second.resume(run, scope=ADA, take_over=True)
        await until(lambda: _has_lines(calls, 2))
        if is_paused:
            stores[0].continued.set()
            await until(lambda: _is_renamed(first, owner))
        (tmp_path / "open").touch()
        await second.settled(run, scope=ADA)
        workflow = await second.workflow(run, scope=ADA)
        (returned,) = [
            event
            for event in await opened[1].read(APP, run)
            if isinstance(event.data, ToolReturned)
        ]
        await until(lambda: _is_logged(caplog, f"run {run} was taken over"))
    assert returned.data.abandoned_by == owner
    left = f"worker {owner} left this call: it may have been performed twice"
    assert f'returned "paid" ({left})' in summary(returned, workflow)
    key = f"app/{run}:{returned.cause}"
    assert f"call {key} is begun: {left}" in caplog.text
    why = {
        True: " because this worker sent no heartbeat for 5 s",
        False: ": the result of its call is refused",
    }
    assert f"taken over{why[is_paused]}; its current call {key} may be repeated" in caplog.text


async def _has_lines(file, count):
    return file.exists() and len(file.read_text().splitlines()) >= count


async def _is_renamed(host, owner):
    return host.owner != owner


async def _is_logged(caplog, text):
    return text in caplog.text


async def test_pruning_a_sender_leaves_its_mail(tmp_path):
    """S10: mail belongs to its receiver."""
    handled = []
    path = tmp_path / "store.db"
    clock = LaterClock(0)
    opened = await SqliteStore.open(path, durability="normal", clock=clock)
    # Stops after the first batch: the artifact is published, and its collection has not begun.
    stopping = StoppingStore(opened, 1, after=True)
    host = board_host(stopping, handled, scope="all", clock=clock)
    publishing = host.publish(BOARD, "Idea", {}, scope=ADA, correlation="c", id="one")
    assert await work_until_stopped(host, stopping, publishing)
    clock = LaterClock(1)
    store = await SqliteStore.open(path, durability="normal", clock=clock)
    (sender,) = await store.runs(APP)
    owner = (await store.run(APP, sender.run)).owner
    await store.release(owner, [("app", sender.run)])
    gateway = board_host(store, handled, scope="all", clock=clock)
    async with gateway:
        await gateway.deliver(sender.run, Stop("now"), scope=ADA)
        pruned = await gateway.prune(scope=APP, ended_before=1 << 60, dry_run=False)
        assert pruned.runs == 1
        await gateway.recover()
        await until(lambda: _is_handled(handled))
    assert handled == ["one"]


async def test_a_gateway_reads_no_events_for_a_message(tmp_path):
    """S11: it neither folds a run nor reads its events, however long it is."""
    model = FunctionModel(lambda _: "well")
    async with two_hosts(chat(), model, tmp_path / "store.db") as (gateway, _, store):
        run = await gateway.start("W", scope=ADA)
        await gateway.settled(run, scope=ADA)
        for number in range(40):
            await gateway.deliver(run, UserMessage(f"{number}"), scope=ADA)
            await gateway.settled(run, scope=ADA)
        store.calls.clear()
        await gateway.deliver(run, UserMessage("last"), scope=ADA)
        assert (store.calls["read"], store.calls["snapshot"], store.calls["append"]) == (0, 0, 0)
        assert sum(store.calls.values()) <= 5, store.calls
        await gateway.settled(run, scope=ADA)
        state = await gateway.state(run, scope=ADA)
        assert state.messages[-2].text == "last"


async def test_a_cold_message_reads_only_what_came_after_the_snapshot(tmp_path):
    """S11: the cost of a message to a long run does not grow with its length."""
    path = tmp_path / "store.db"
    model = FunctionModel(lambda _: "well")
    store = await SqliteStore.open(path, durability="normal")
    async with host_for(chat(), model, store=store) as host:
        run = await host.start("W", scope=ADA)
        for number in range(SNAPSHOT_EVENTS // 4):
            await host.deliver(run, UserMessage(f"{number}"), scope=ADA)
            row = await host.settled(run, scope=ADA)
    assert row.seq > SNAPSHOT_EVENTS
    store = CountingStore(await SqliteStore.open(path, durability="normal"))
    async with host_for(chat(), model, store=store) as host:
        await host.deliver(run, UserMessage("last"), scope=ADA)
        await host.settled(run, scope=ADA)
        assert all(after >= SNAPSHOT_EVENTS for after in store.reads), store.reads
        state = await host.state(run, scope=ADA)
        assert state.messages[-2].text == "last"


async def test_streamed_text_crosses_processes(tmp_path):
    """S12: a follower at a gateway gets the pieces while the worker streams them."""
    listeners = {}
    path = tmp_path / "store.db"
    here, there = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    model = ScriptedModel({"A": ["one two three"]})
    gateway = host_for(
        chat(), model, store=here, works=False, live=MergedLiveStream(LocalBus(listeners))
    )
    worker = host_for(chat(), model, store=there, live=MergedLiveStream(LocalBus(listeners)))
    async with gateway, worker:
        run = await gateway.start("W", scope=ADA)
        found = []

        async def follow():
            async for item in gateway.events(run, scope=ADA, follow=True):
                found.append(item)
                if isinstance(item, Event) and type(item.data).__name__ == "ModelReplied":
                    return

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.1)  # The announcement arrives.
        await worker.recover()
        await gateway.deliver(run, UserMessage("hi"), scope=ADA)
        await asyncio.wait_for(following, 10)
    text = "".join(item.text for item in found if isinstance(item, TextDelta))
    assert text == "one two three"


LOGIN = {
    "tools/login.py": b'''
from weft import use_ui_tool


async def login(context_variables) -> int:
    """Ask for an account."""
    answer = await use_ui_tool("login", {})
    return len(answer["pin"])
'''
}
SCHEMA = {
    "type": "object",
    "properties": {"pin": {"type": "string", "writeOnly": True}},
    "required": ["pin"],
}
TOOL = {
    "tool_type": "UI_Tool", "agent": "A", "file": "login.py", "function": "login",
    "ui": {"component": "Login", "mode": "inline"}, "response_schema": SCHEMA,
}  # fmt: skip
PIN = "canary-7f3a9c"


@pytest.mark.parametrize("is_encrypted", [True, False])
async def test_a_secret_answer_crosses_processes(tmp_path, is_encrypted):
    """S12: it is encrypted on its way, and refused where it could not arrive."""
    path = tmp_path / "store.db"
    here, there = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    spec = declared(tools=[TOOL], variables={"note": derived("str", "")})
    vaults = [EncryptedVault(store, b"k" * 32) if is_encrypted else None for store in (here, there)]
    model = ScriptedModel([call("login"), "done"])
    gateway = host_for(spec, model, code=LOGIN, store=here, works=False, vault=vaults[0])
    worker = host_for(spec, model, code=LOGIN, store=there, vault=vaults[1])
    async with gateway, worker:
        await worker.recover()
        run = await gateway.start("W", scope=ADA, message="hi")
        await gateway.settled(run, scope=ADA)
        (asked,) = await gateway.requests(scope=ADA, run=run)
        answer = Answer(asked.id, {"pin": PIN})
        if not is_encrypted:
            with pytest.raises(UsageError, match="cannot be sent to another process"):
                await gateway.deliver(run, answer, scope=ADA)
            assert len(await gateway.requests(scope=ADA, run=run)) == 1
            return
        await gateway.deliver(run, answer, scope=ADA)
        await gateway.settled(run, scope=ADA)
        events = await there.read(APP, run)
        (returned,) = [event.data for event in events if isinstance(event.data, ToolReturned)]
        assert returned.value == len(PIN)
        assert PIN not in repr(events)
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert PIN.encode() not in files


async def test_an_answer_to_a_run_whose_process_has_died_is_taken_by_the_host_that_works(tmp_path):
    """A host that works, but does not claim runs, continues the run that it is asked to."""
    path = tmp_path / "store.db"
    spec = declared(tools=[{**TOOL, "response_schema": {"type": "object"}}])
    lives = [LaterClock(number) for number in range(2)]
    first = await SqliteStore.open(path, clock=lives[0], durability="normal")
    model = ScriptedModel([call("login"), "done"])
    # The append after the question: the tool waits in memory, and the run is held.
    stopping = StoppingStore(first, 4, after=False)
    host = host_for(spec, model, code=LOGIN, store=stopping, clock=lives[0])

    async def ask():
        run = await host.start("W", scope=ADA, message="hi", run="r")
        await host.settled(run, scope=ADA)
        stopping.stopped.set()
        await asyncio.Event().wait()

    await work_until_stopped(host, stopping, ask())
    store = await SqliteStore.open(path, clock=lives[1], durability="normal")
    host = host_for(spec, ScriptedModel(["done"]), code=LOGIN, store=store, clock=lives[1])
    async with host:
        assert (await host.run("r", scope=ADA)).owner
        (asked,) = await host.requests(scope=ADA, run="r")
        await host.deliver("r", Answer(asked.id, {"pin": "1234"}), scope=ADA)
        await until(lambda: _has_returned(store, "r"), 3)


async def _has_returned(store, run):
    return any(isinstance(event.data, ToolReturned) for event in await store.read(APP, run))
