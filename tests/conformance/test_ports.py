"""Signals, live streams and vaults against their suites; a broken one must fail each check."""

import asyncio
import logging
import secrets
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import pairwise

import pytest
from nats.js.errors import BadRequestError

from support.nats_server import NatsServer
from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.live.merged import MergedLiveStream
from weft.adapters.live.sockets import SocketBus
from weft.adapters.nats.bus import NatsBus
from weft.adapters.nats.signal import NatsSignal
from weft.adapters.vault import EncryptedVault, MemoryVault
from weft.errors import UsageError
from weft.ports.live import TextDelta
from weft.testing.ports import live, signal, vault
from weft.testing.ports.live import LIVE_CHECKS
from weft.testing.ports.signal import SIGNAL_CHECKS, Worker
from weft.testing.ports.vault import VAULT_CHECKS
from weft.testing.ports.waiting import until

RUN = ("shop", "r1")


def named(check) -> str:
    return check.__name__


async def same(thing):
    return thing, thing


# Signals


class MemorySignal:
    """A signal is a function call; one worker after the other gets those without an owner."""

    def __init__(self):
        self._workers = {}

    def notify(self, owner=""):
        if not owner and self._workers:
            owner = next(iter(self._workers))
            self._workers[owner] = self._workers.pop(owner)
        self._workers.get(owner, lambda: None)()

    @asynccontextmanager
    async def listen(self, owner, wake):
        self._workers[owner] = wake
        yield
        del self._workers[owner]

    async def close(self):
        pass


async def nats_signals(url: str) -> tuple[NatsSignal, NatsSignal]:
    name = secrets.token_hex(4)
    signals = NatsSignal(url, name=name), NatsSignal(url, name=name)
    await until(lambda: all(one.is_ready for one in signals), "connections to NATS")
    return signals


@pytest.mark.parametrize("check", SIGNAL_CHECKS, ids=named)
async def test_signal_in_memory(check):
    await check(lambda: same(MemorySignal()))


@pytest.mark.parametrize("check", SIGNAL_CHECKS, ids=named)
async def test_signal_over_nats(check, nats_url):
    await check(lambda: nats_signals(nats_url))


class WakesAll(MemorySignal):
    def notify(self, owner=""):
        for wake in self._workers.values():
            wake()


class NeverStops(MemorySignal):
    @asynccontextmanager
    async def listen(self, owner, wake):
        self._workers[owner] = wake
        yield


class NeedsListener(MemorySignal):
    def notify(self, owner=""):
        self._workers[owner or min(self._workers, default="nobody")]()


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (signal.owner_is_woken, WakesAll),
        (signal.one_worker_is_woken, WakesAll),
        (signal.listening_ends, NeverStops),
        (signal.nobody_listens, NeedsListener),
    ],
    ids=named,
)
async def test_broken_signals_fail(check, broken, monkeypatch):
    monkeypatch.setattr("weft.testing.ports.waiting.WAIT_SECONDS", 0.2)
    with pytest.raises((AssertionError, KeyError)):
        await check(lambda: same(broken()))


async def test_signals_return_after_nats_was_down(tmp_path, caplog):
    caplog.set_level(logging.INFO, "weft.nats")
    server = NatsServer(tmp_path)
    server.start()
    server.stop()
    sender = NatsSignal(server.url)
    worker = Worker()
    try:
        async with sender.listen("one", worker.wake):
            await until(lambda: bool(caplog.records), "a warning")
            sender.notify("one")
            for _ in range(2):
                server.start()
                await until(lambda: sender.is_ready, "a connection")
                before = worker.count
                sender.notify("one")
                await until(lambda before=before: worker.count > before, "a signal to the owner")
                sender.notify()
                await until(lambda before=before: worker.count > before + 1, "a signal to any")
                server.stop()
                await until(lambda: not sender.is_ready, "the loss of the connection")
            sender.notify("one")
    finally:
        await sender.close()
        server.stop()
    warnings = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert len(warnings) == 3, warnings  # one per outage
    assert all("Workers look at the store every second" in text for text in warnings)


async def test_signal_that_a_worker_does_not_confirm_reaches_another(nats_url, monkeypatch):
    """A paused worker has taken the signal: JetStream gives it to the next."""
    monkeypatch.setattr("weft.adapters.nats.signal.CONFIRM_SECONDS", 1)
    # Each second the server gives half of the signals that are left to the paused worker again.
    monkeypatch.setattr("weft.testing.ports.waiting.WAIT_SECONDS", 40)
    first, second = await nats_signals(nats_url)
    other = Worker()

    def fail() -> None:
        raise UsageError("this worker does not confirm")

    try:
        async with first.listen("one", fail), second.listen("two", other.wake):
            for _ in range(10):
                first.notify()
            await until(lambda: other.count >= 10, "all signals at the other worker")
    finally:
        await first.close()
        await second.close()


async def begin_together(nats_url):
    """Let six workers begin at the same time, and wait until each has heard a signal."""
    name = secrets.token_hex(4)
    signals = {f"w{number}": NatsSignal(nats_url, name=name) for number in range(6)}
    workers = {owner: Worker() for owner in signals}
    async with AsyncExitStack() as stack:
        for one in signals.values():
            stack.push_async_callback(one.close)
        listening = [one.listen(owner, workers[owner].wake) for owner, one in signals.items()]
        await asyncio.gather(*map(stack.enter_async_context, listening))
        await until(lambda: all(one.is_ready for one in signals.values()), "connections")
        for owner in signals:
            signals["w0"].notify(owner)
        await until(lambda: all(one.count for one in workers.values()), "signals to all")


async def test_workers_that_begin_at_the_same_time_all_hear_signals(nats_url):
    """They share a consumer, which only one can create; it is not always two at a time that try."""
    for _ in range(5):
        await begin_together(nats_url)


async def test_set_up_that_the_server_refuses_is_repeated(nats_url, monkeypatch):
    attempts = []
    subscribe_all = NatsSignal._subscribe_all

    async def refuse_once(self, client):
        attempts.append(client)
        if len(attempts) == 1:
            raise BadRequestError(code=400, description="consumer name already in use")
        await subscribe_all(self, client)

    monkeypatch.setattr(NatsSignal, "_subscribe_all", refuse_once)
    sender = NatsSignal(nats_url)
    try:
        await until(lambda: sender.is_ready, "a connection")
    finally:
        await sender.close()
    assert len(attempts) == 2


async def test_address_of_another_kind_is_refused():
    with pytest.raises(UsageError, match="not an address of NATS: 'http://x'"):
        NatsSignal("http://x")


# Live streams


class PairedBus:
    """A bus in memory with a small limit."""

    limit = 300

    def __init__(self, listeners):
        self._listeners = listeners
        self.sent = []

    def send(self, topic, content):
        assert len(content) <= self.limit
        self.sent.append((topic, asyncio.get_running_loop().time()))
        for listening, receive in tuple(self._listeners):
            if listening == topic:
                receive(content)

    def listen(self, topic, receive):
        self._listeners.append((topic, receive))

    async def close(self):
        pass


async def paired_streams():
    listeners = []
    return MergedLiveStream(PairedBus(listeners)), MergedLiveStream(PairedBus(listeners))


async def socket_streams(file):
    return MergedLiveStream(SocketBus(file)), MergedLiveStream(SocketBus(file))


async def nats_streams(url: str):
    name = secrets.token_hex(4)
    buses = NatsBus(url, name=name), NatsBus(url, name=name)
    streams = tuple(MergedLiveStream(bus) for bus in buses)
    await until(lambda: all(bus.is_ready for bus in buses), "connections to NATS")
    return streams


@pytest.mark.parametrize("check", LIVE_CHECKS, ids=named)
async def test_live_stream_in_memory(check):
    await check(lambda: same(MemoryLiveStream()))


@pytest.mark.parametrize("check", LIVE_CHECKS, ids=named)
async def test_live_stream_merged(check):
    await check(paired_streams)


@pytest.mark.parametrize("check", LIVE_CHECKS, ids=named)
async def test_live_stream_over_sockets(check, tmp_path):
    await check(lambda: socket_streams(tmp_path / "weft.db"))
    assert list(tmp_path.iterdir()) == [], "the sockets and their folder are removed"


@pytest.mark.parametrize("check", LIVE_CHECKS, ids=named)
async def test_live_stream_over_nats(check, nats_url):
    await check(lambda: nats_streams(nats_url))


class LosesText(MemoryLiveStream):
    def publish(self, run, delta):
        if getattr(delta, "offset", 0) % 1000 != 994 and len(delta.text) < 1000:
            super().publish(run, delta)


class MixesTenants(MemoryLiveStream):
    def publish(self, run, delta):
        for other in self.runs():
            super().publish(other, delta)


class LosesRetries(MemoryLiveStream):
    def publish(self, run, delta):
        if type(delta).__name__ != "ModelRetry":
            super().publish(run, delta)


class NeverEnds(MemoryLiveStream):
    @contextmanager
    def subscribe(self, run, receive):
        self._subscribers.setdefault(run, []).append(receive)
        yield


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (live.text_arrives, LosesText),
        (live.text_in_one_piece_arrives, LosesText),
        (live.every_kind_arrives, LosesRetries),
        (live.runs_are_apart, MixesTenants),
        (live.subscribing_ends, NeverEnds),
    ],
    ids=named,
)
async def test_broken_live_streams_fail(check, broken, monkeypatch):
    monkeypatch.setattr("weft.testing.ports.waiting.WAIT_SECONDS", 0.2)
    with pytest.raises(AssertionError):
        await check(lambda: same(broken()))


async def test_deltas_of_many_runs_cross_processes_in_one_message_per_50_ms():
    listeners = []
    worker_bus = PairedBus(listeners)
    worker_bus.limit = 100_000
    worker, gateway = MergedLiveStream(worker_bus), MergedLiveStream(PairedBus(listeners))
    got = []
    runs = [("shop", f"r{number}") for number in range(20)]
    blocks = [gateway.subscribe(run, got.append) for run in runs]
    for block in blocks:
        block.__enter__()
    worker_bus.sent.clear()
    for step in range(30):
        for run in runs:
            worker.publish(run, TextDelta(run[1], 1, step, "x"))
        await asyncio.sleep(0.01)
    await until(lambda: sum(len(delta.text) for delta in got) == 600, "all text")
    times = [at for _, at in worker_bus.sent]
    assert all(later - earlier > 0.045 for earlier, later in pairwise(times))
    for block in blocks:
        block.__exit__(None, None, None)
    await worker.close()
    await gateway.close()


async def test_process_that_starts_later_learns_the_subscriptions():
    listeners = []
    gateway = MergedLiveStream(PairedBus(listeners))
    with gateway.subscribe(RUN, lambda _: None):
        worker = MergedLiveStream(PairedBus(listeners))
        assert worker.has_subscribers(RUN)
    assert not worker.has_subscribers(RUN)
    await worker.close()
    await gateway.close()


async def test_subscriptions_of_a_dead_process_expire(monkeypatch):
    monkeypatch.setattr("weft.adapters.live.merged.ANNOUNCE_SECONDS", 0.05)
    monkeypatch.setattr("weft.adapters.live.merged.EXPIRE_SECONDS", 0.2)
    listeners = []
    worker, gateway = MergedLiveStream(PairedBus(listeners)), MergedLiveStream(PairedBus(listeners))
    with gateway.subscribe(RUN, lambda _: None):
        await asyncio.sleep(0.4)
        assert worker.has_subscribers(RUN), "repeated announcements keep the subscription"
        gateway._timer.cancel()
        await until(lambda: not worker.has_subscribers(RUN), "the end of the subscription")
    await worker.close()
    await gateway.close()


# Vaults


class Rows:
    """The rows of a store, in memory."""

    def __init__(self):
        self.rows = {}

    async def put_secret(self, run, request, content):
        self.rows[run, request] = content

    async def secrets(self, run, prefix):
        return [
            (request, content)
            for (other, request), content in self.rows.items()
            if other == run and request.startswith(prefix)
        ]

    async def drop_secrets(self, run, prefix):
        for request, _ in await self.secrets(run, prefix):
            del self.rows[run, request]


async def opened(thing):
    return thing


@pytest.mark.parametrize("check", VAULT_CHECKS, ids=named)
async def test_vault_in_memory(check):
    await check(lambda: opened(MemoryVault()))


@pytest.mark.parametrize("check", VAULT_CHECKS, ids=named)
async def test_encrypted_vault(check):
    await check(lambda: opened(EncryptedVault(Rows(), bytes(32))))


class MixesPrefixes(MemoryVault):
    async def get(self, run, prefix):
        found = await super().get(run, "")
        return {name: item for name, item in found.items() if prefix.strip("%_:").lower() in name}


class MixesRuns(MemoryVault):
    async def get(self, run, prefix):
        return await super().get(next(iter(self._answers), run), prefix)


class TakesOnce(MemoryVault):
    async def get(self, run, prefix):
        found = await super().get(run, prefix)
        self._answers.clear()
        return found


class KeepsAll(MemoryVault):
    async def drop(self, run, prefix=""):
        pass


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (vault.answers_come_back, TakesOnce),
        (vault.prefixes_are_exact, MixesPrefixes),
        (vault.runs_are_apart, MixesRuns),
        (vault.dropped_answers_are_gone, KeepsAll),
    ],
    ids=named,
)
async def test_broken_vaults_fail(check, broken):
    with pytest.raises(AssertionError):
        await check(lambda: opened(broken()))


async def test_stored_secret_shows_nothing_and_cannot_be_moved(caplog):
    rows = Rows()
    kept = EncryptedVault(rows, bytes(32))
    await kept.put(RUN, "q", vault.ANSWER)
    assert b"4111" not in b"".join(rows.rows.values())
    rows.rows[RUN, "other"] = rows.rows[RUN, "q"]
    assert await kept.get(RUN, "") == {"q": vault.ANSWER}
    assert await EncryptedVault(rows, bytes(31) + b"x").get(RUN, "q") == {}
    assert "the secret answer to other was encrypted with another key" in caplog.text
    assert "4111" not in caplog.text + repr(vault.ANSWER)
