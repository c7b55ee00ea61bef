"""One process of the storage stress: it sends mail, works on runs, or does both.

    python node.py STORE LOG --send RATE --work --seed N [--mutant NAME] [--lose SHARE]
                                [--effect SECONDS] [--think SECONDS] [--nats URL]
                                [--burst COUNT]

A run is a chain: each event has the hash of the one before and the id of the mail it was made of.
What was acknowledged and done is written to LOG; `checks.py` compares it with the store.
"""

import argparse
import asyncio
import hashlib
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from stress.stores import DEAD_AFTER, MUTANTS, Losing, open_store
from weft.engine.events import Event, EventData, RunStarted, VariableSet
from weft.engine.rows import NEVER, Batch, IndexChange, Mail, MailTaken, RunRow
from weft.errors import StoreConflict, StoreError, UnreadMail
from weft.ports.scope import Scope
from weft.ports.store import RunKey, Store

APP = "stress"
NAMES = 30
RUNS = 30
#: A named run ends after this many events; its name begins another.
LAST_EVENT = 8
#: Seconds from one burst to the next.
BURST_SECONDS = 0.25


def start_of(name: str) -> RunStarted:
    """Return the first event of a run."""
    return RunStarted("Stress", "digest", APP, "ada", {}, correlation=name)


def link(before: str, content: dict[str, Any]) -> str:
    """Return the hash of an event in its chain."""
    return hashlib.sha256(f"{before}{json.dumps(content, sort_keys=True)}".encode()).hexdigest()


@dataclass
class Chain:
    """A run as its owner has it in memory."""

    run: str
    name: str = ""
    seq: int = 0
    hash: str = ""
    started_at: int = 0
    timer: int = NEVER
    timers: int = 0
    #: Whether an effect is under way, here or in a process that has died.
    held: bool = False

    def follow(self, event: Event) -> None:
        """Take in an event of the run."""
        self.seq = event.seq
        if isinstance(event.data, RunStarted):
            self.name, self.started_at = event.data.correlation, event.at
        elif isinstance(event.data, VariableSet) and isinstance(event.data.value, dict):
            content = event.data.value
            self.hash, self.held = str(content["hash"]), bool(content["held"])
            if "set" in content:
                self.timer, self.timers = int(str(content["set"])), self.timers + 1
            if "fired" in content:
                self.timer = NEVER


@dataclass
class Node:
    """The work of one process."""

    store: Store
    log: TextIO
    chance: random.Random
    #: How long an effect takes at most.
    effect: float = 0.6
    #: How long it takes at most to decide about mail; more mail may come in that time.
    think: float = 0.02
    owner: str = field(default_factory=lambda: uuid4().hex)
    chains: dict[RunKey, Chain] = field(default_factory=dict[RunKey, Chain])
    busy: dict[RunKey, asyncio.Task[None]] = field(
        default_factory=dict[RunKey, "asyncio.Task[None]"]
    )
    offset: int = 0
    #: When the last heartbeat that was accepted had been sent, by the monotonic clock.
    beaten: float = 0

    @property
    def is_alive(self) -> bool:
        """Whether the runs of this owner cannot belong to another one yet."""
        return time.monotonic() - self.beaten < DEAD_AFTER * 0.8 / 1000

    def now(self) -> int:
        return time.time_ns() // 1_000_000 + self.offset

    def note(self, *words: object) -> None:
        print(*words, file=self.log, flush=True)

    async def send(self, rate: float) -> None:
        """Send mail at a rate; some ids twice, some from every process at once."""
        recent: list[Mail] = []
        pending: set[asyncio.Task[None]] = set()
        while True:
            again = recent and self.chance.random() < 0.15
            mail = self.chance.choice(recent) if again else self._new_mail()
            recent = [*recent[-50:], mail]
            task = asyncio.create_task(self._put(mail))
            pending.add(task)
            task.add_done_callback(pending.discard)
            await asyncio.sleep(self.chance.expovariate(rate))

    async def burst(self, count: int) -> None:
        """Send mail to many runs at once, at the same moments as every other process."""
        while True:
            await asyncio.sleep(BURST_SECONDS - time.time() % BURST_SECONDS)
            mails = [
                self._mail(self.chance.randrange(NAMES + RUNS), uuid4().hex) for _ in range(count)
            ]
            await asyncio.gather(*map(self._put, mails))

    def _new_mail(self) -> Mail:
        if self.chance.random() < 0.1:
            number = int(time.time() * 8)
            return self._mail(number % (NAMES + RUNS), f"shared-{number}")
        return self._mail(self.chance.randrange(NAMES + RUNS), uuid4().hex)

    def _mail(self, target: int, id_: str) -> Mail:
        data = VariableSet("mail", id_, "sender")
        if target < NAMES:
            return Mail(APP, f"name{target}", id_, "user:ada", data, start_of(f"name{target}"))
        return Mail(APP, f"run{target - NAMES}", id_, "user:ada", data)

    async def _put(self, mail: Mail) -> None:
        while True:
            try:
                run = await self.store.put(mail, package=b"package")
            except StoreError as error:
                if isinstance(error, StoreConflict):
                    raise
                await asyncio.sleep(0.05)
            else:
                self.note("ack", mail.id, run)
                return

    async def beat(self) -> None:
        """Send a heartbeat now and then; after a refused one begin a new life."""
        while True:
            with suppress(StoreError):
                sent = time.monotonic()
                beat = await self.store.beat(self.owner)
                self.offset += beat.now - self.now()
                if not beat.alive:
                    self.note("refused", self.owner)
                    self.owner = uuid4().hex
                    self.chains.clear()
                    continue
                self.beaten = sent
            await asyncio.sleep(DEAD_AFTER / 5000)

    async def work(self) -> None:
        """Claim runs and work on them."""
        while True:
            if not self.is_alive:
                await asyncio.sleep(0.01)
                continue
            try:
                claimed = await self.store.claim(self.owner, limit=20)
                for key in claimed.runs:
                    if key not in self.busy:
                        self.busy[key] = asyncio.create_task(self._work_on(key, claimed.now))
                due = await self.store.next_due()
                pause = 1.0 if due is None else max(0.0, min(1.0, (due - self.now()) / 1000))
                if not claimed.runs:
                    await self.store.wait(max(pause, 0.005))
                else:
                    await asyncio.sleep(0)
            except StoreError:
                await asyncio.sleep(0.1)

    async def _work_on(self, key: RunKey, claimed_at: int) -> None:
        try:
            await self._advance(key, claimed_at)
        except StoreConflict:
            self.chains.pop(key, None)
        except StoreError:
            self.chains.pop(key, None)
            with suppress(StoreError):
                await self.store.release(self.owner, [key])
        finally:
            del self.busy[key]

    async def _advance(self, key: RunKey, claimed_at: int) -> None:
        owner = self.owner
        chain = self.chains.get(key) or await self._load(key)
        done, effect = False, chain.held
        self.note("claim", owner, chain.run, chain.seq, claimed_at)
        # The result of an effect is always offered: the store decides whether it counts.
        while not done and owner == self.owner and (effect or self.is_alive):
            if effect:
                await asyncio.sleep(self.chance.random() * self.effect)
            mail = await self.store.pending(*key)
            await asyncio.sleep(self.chance.random() * self.think)
            performed, effect = effect, bool(mail) and self.chance.random() < 0.3
            batch = self._batch(chain, mail, owner, held=effect, performed=performed)
            try:
                left = await self._append(batch, owner)
            except UnreadMail:
                effect = performed
                continue
            for event in batch.events:
                chain.follow(event)
            self.chains[key] = chain
            if effect:
                self.note("effect", owner, chain.run, chain.seq)
            done = batch.row.status == "ended" or (not effect and not left)

    async def _load(self, key: RunKey) -> Chain:
        chain = Chain(key[1])
        for event in await self.store.read(Scope.operator(APP), key[1]):
            chain.follow(event)
        return chain

    async def _append(self, batch: Batch, owner: str) -> bool:
        while True:
            try:
                return await self.store.append(batch, owner=owner)
            except StoreConflict:
                raise
            except StoreError:
                if owner != self.owner:
                    raise
                await asyncio.sleep(0.05)

    def _batch(
        self, chain: Chain, mail: Sequence[Mail], owner: str, *, held: bool, performed: bool
    ) -> Batch:
        now, data, sent = self.now(), list[EventData](), list[IndexChange]()
        name, hash_, timer = chain.name, chain.hash, chain.timer
        if not chain.seq and mail and mail[0].start is not None:
            name = mail[0].start.correlation
            data.append(mail[0].start)

        def add(**content: object) -> None:
            nonlocal hash_
            content |= {"owner": owner, "held": held}
            hash_ = link(hash_, content)
            data.append(VariableSet("link", {**content, "hash": hash_}, "stress"))

        if performed:
            add(performed=True)
        for each in mail:
            add(mail=each.id)
            # Mail of mail is not answered, so that the exchange comes to an end.
            if "." not in each.id and self.chance.random() < 0.2:
                target = self.chance.randrange(NAMES + RUNS)
                sent.append(self._mail(target, f"{chain.run}.{each.id}"))
        if timer <= now:
            add(fired=timer)
            timer = NEVER
        elif mail and timer == NEVER and self.chance.random() < 0.2:
            timer = now + self.chance.randrange(50, 1500)
            add(set=timer)
        seq = chain.seq + len(data)
        ended = bool(name) and not held and timer == NEVER and seq >= LAST_EVENT
        events = [
            Event(chain.seq + number, now, "stress", 0, 0, each)
            for number, each in enumerate(data, start=1)
        ]
        row = RunRow(
            run=chain.run, app=APP, user="ada", workflow="Stress", digest="digest",
            status="ended" if ended else "waiting", seq=seq,
            started_at=chain.started_at or now, changed_at=now, turns=0, calls=0, input_tokens=0,
            output_tokens=0, cost_usd=0.0, unpriced_calls=0, preview="",
            outcome="completed" if ended else None, reason="", parent="",
            batch=uuid4().hex, name=name,
        )  # fmt: skip
        changes = (*sent, *(MailTaken(each.id) for each in mail))
        return Batch(chain.run, chain.seq, events, row, changes, None, timer, held)


async def main() -> None:
    """Run one node until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("log", type=Path)
    parser.add_argument("--send", type=float, default=0)
    parser.add_argument("--work", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lose", type=float, default=0)
    parser.add_argument("--effect", type=float, default=Node.effect)
    parser.add_argument("--think", type=float, default=Node.think)
    parser.add_argument("--burst", type=int, default=0)
    parser.add_argument("--nats", default="")
    parser.add_argument("--mutant", choices=["", *MUTANTS], default="")
    options = parser.parse_args()
    if options.mutant:
        MUTANTS[options.mutant]()
    chance = random.Random(options.seed)
    store = Losing(await open_store(options.store, options.nats), chance, options.lose)
    with options.log.open("a") as log:
        node = Node(store, log, chance, options.effect, options.think)
        tasks = []
        if options.work:
            tasks += [asyncio.create_task(node.beat()), asyncio.create_task(node.work())]
        if options.send:
            tasks.append(asyncio.create_task(node.send(options.send)))
        if options.burst:
            tasks.append(asyncio.create_task(node.burst(options.burst)))
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        stop = asyncio.create_task(ended.wait())
        done, _ = await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stop}:
            task.result()
        for task in (*tasks, *node.busy.values()):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await node.store.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
