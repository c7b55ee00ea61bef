"""Deployments that share a NATS server: WEFT_SIGNAL of each names the same address."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from support.postgres_server import empty_postgres_database
from support.run_play import ADA
from unit.runtime.test_two_processes import chat
from weft.adapters.sql import SqliteStore
from weft.adapters.sql.postgres.schema import migrate
from weft.adapters.system_clock import SystemClock
from weft.app.stores import OpenedStore, open_store
from weft.errors import StoreError
from weft.ports.live import TextDelta
from weft.runtime.signals import UserMessage
from weft.testing import ScriptedModel, host_for
from weft.testing.ports.waiting import until

RUN = ("shop", "r1")


@asynccontextmanager
async def opened(nats_url: str, *addresses: str) -> AsyncGenerator[list[OpenedStore]]:
    """Open stores as processes do that have these settings."""
    async with AsyncExitStack() as stack:
        found: list[OpenedStore] = []
        for address in addresses:
            settings = {"WEFT_STORE": address, "WEFT_SIGNAL": nats_url}
            found.append(await open_store(settings, SystemClock()))
            stack.push_async_callback(found[-1].store.close)
            stack.push_async_callback(found[-1].live.close)
        yield found


@pytest.fixture
def databases(postgres_url: str) -> Iterator[tuple[str, str]]:
    with (
        empty_postgres_database(postgres_url) as ours,
        empty_postgres_database(postgres_url) as theirs,
    ):
        yield ours, theirs


async def test_workers_are_woken_by_their_own_deployment_only(databases, nats_url):
    ours, theirs = databases
    for address in databases:
        await migrate(address)
    also_ours = f"{ours}{'&' if '?' in ours else '?'}sslmode=prefer"
    async with opened(nats_url, ours, also_ours, theirs) as stores:
        gateway, *workers = [one.store._signal for one in stores]
        woken = {"ours": 0, "theirs": 0}

        def wake(name):
            woken[name] += 1

        async with AsyncExitStack() as stack:
            for name, signal in zip(woken, workers, strict=True):
                listening = signal.listen(f"worker of {name}", lambda name=name: wake(name))
                await stack.enter_async_context(listening)
            await until(
                lambda: gateway.is_ready and all(worker.is_ready for worker in workers), "NATS"
            )
            for _ in range(10):
                gateway.notify()
            await until(lambda: woken["ours"] >= 10, "all signals at the own worker")
            assert woken["theirs"] == 0


async def test_streamed_text_stays_in_its_deployment(tmp_path, nats_url):
    ours, theirs = str(tmp_path / "ours.db"), str(tmp_path / "theirs.db")
    async with opened(nats_url, ours, ours, theirs, theirs) as stores:
        senders, receivers = [[one.live for one in stores[first::2]] for first in (0, 1)]
        got = [[], []]
        with receivers[0].subscribe(RUN, got[0].append), receivers[1].subscribe(RUN, got[1].append):
            for sender in senders:
                await until(lambda sender=sender: sender.has_subscribers(RUN), "the subscription")
            senders[0].publish(RUN, TextDelta("r1", 1, 0, "a secret"))
            await until(lambda: bool(got[0]), "the text")
            # It would come to the other deployment before what that sends now.
            senders[1].publish(RUN, TextDelta("r1", 1, 0, "their own"))
            await until(lambda: bool(got[1]), "their text")
        assert [[delta.text for delta in deltas] for deltas in got] == [["a secret"], ["their own"]]


async def test_runs_go_on_while_nats_is_down(databases, caplog):
    """Workers look at the store every second; NATS is reported once by each connection."""
    address, _ = databases
    await migrate(address)
    async with opened("nats://127.0.0.1:1", address, address) as ports:
        model = ScriptedModel(["well", "bye"])
        gateway = host_for(chat(), model, store=ports[0].store, works=False)
        worker = host_for(chat(), model, store=ports[1].store)
        async with gateway, worker, asyncio.timeout(30):
            await worker.recover()
            run = await gateway.start("W", scope=ADA, message="hi")
            assert (await gateway.settled(run, scope=ADA)).status == "waiting"
            await gateway.deliver(run, UserMessage("bye"), scope=ADA)
            await gateway.settled(run, scope=ADA)
            texts = [each.text for each in (await gateway.state(run, scope=ADA)).messages]
    assert texts == ["hi", "well", "bye", "bye"]
    warnings = [one.message for one in caplog.records if one.name == "weft.nats"]
    assert len(warnings) == 4
    assert all("Workers look at the store every second" in text for text in warnings)


async def test_store_that_fails_while_its_name_is_asked_is_closed(tmp_path, nats_url, monkeypatch):
    closed = []

    async def fail(*_):
        raise StoreError("the disk is full")

    async def close(self):
        closed.append(self)
        await real(self)

    real = SqliteStore.close
    monkeypatch.setattr(SqliteStore, "record", fail)
    monkeypatch.setattr(SqliteStore, "close", close)
    with pytest.raises(StoreError, match="disk is full"):
        async with opened(nats_url, str(tmp_path / "s.db")):
            pass
    assert len(closed) == 1
