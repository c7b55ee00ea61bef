"""Random flows in processes that die: what their steps do, and how one process lives.

What a step comes to follows from its name, its attempt and the values it has, so that a flow goes
the same way however often it is taken up again. Each call writes down its key and its name.

Usage: python flow_lives.py FOLDER SEED..., which lets processes live and die for each seed, and
prints one JSON object for each.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random

from support.random_flows import FlowMaker, outcome_of
from support.stopping_store import LaterClock
from weft.adapters.sql import SqliteStore
from weft.context.agent_step import StepResult
from weft.engine.events import TurnStarted
from weft.engine.flow.plan import works_of
from weft.errors import UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.runtime.workflow import Linking
from weft.testing import ScriptedModel, host_for

ADA = Scope("app", "ada")
EVERYBODY = Scope("app", "ada", roles=("boss", "next"))


def flow_of(seed):
    """Return a flow without deadlines: how long something takes is not the same twice."""
    return FlowMaker(Random(seed), timed=False).spec()


def drawn(*parts):
    return Random(sha256(repr(parts).encode()).hexdigest())


def objects_of(spec, seed, note):
    """Return the functions of all steps, and of what undoes them."""

    def function(name):
        async def work(state, context):
            note(f"{context.key} {name}")
            await asyncio.sleep(0)
            values = {key: state[key] for key in ("n", "kind", "notes", "seen")}
            chance = drawn(seed, name, context.attempt, json.dumps(values, sort_keys=True))
            made = outcome_of(chance, values)
            if isinstance(made, Exception):
                raise made
            return StepResult(*made) if isinstance(made, tuple) else made

        return work

    return {work.function: function(work.function) for work in works_of(spec.flow)}


def flow_host(seed, store, note, lives=0):
    """Return a host that lives after others which have died."""
    spec = flow_of(seed)
    linking = Linking(objects=objects_of(spec, seed, note))
    return host_for(spec, ScriptedModel([]), store=store, clock=LaterClock(lives), linking=linking)


async def run_to_end(host, seed):
    """Begin the run or take it up, and bring it to its end; return its result."""
    if not await host.runs(scope=ADA):
        await host.start("Flow", scope=ADA, run="run")
    await host.recover()
    while (await host.settled("run", scope=ADA)).status != "ended":
        await answer(host, seed)
    state = await host.state("run", scope=ADA)
    begun = [getattr(event, "data", None) async for event in host.events("run", scope=ADA)]
    undone = Counter(data.undoes for data in begun if isinstance(data, TurnStarted) and data.undoes)
    return {
        "outcome": state.outcome,
        "values": dict(state.variables),
        "undone": len(undone),
        "most": max(undone.values(), default=0),
    }


async def answer(host, seed):
    """Answer what is asked; else a little time passes until the next attempt."""
    for request in await host.requests(scope=EVERYBODY, run="run"):
        decision = drawn(seed, request.agent).choice(["approve", "reject"])
        try:
            await host.deliver("run", Answer(request.id, {"decision": decision}), scope=EVERYBODY)
        except UsageError:
            continue  # It was answered meanwhile.
    await asyncio.sleep(0.002)


class KillingStore:
    """A store whose process is killed at an append: before it is written, or after."""

    def __init__(self, store, fatal):
        self._store = store
        self._left = abs(fatal)
        self._after = fatal < 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, batch, *, owner):
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        left = await self._store.append(batch, owner=owner)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return left


async def live(seed, folder, fatal, lives):
    """Live until the fatal append; 0: until the run has ended, and keep its result."""
    store = await SqliteStore.open(folder / "store.db", clock=LaterClock(lives))

    def note(text):
        with (folder / "effects").open("a") as file:
            file.write(f"{text}\n")

    async with flow_host(seed, KillingStore(store, fatal), note, lives) as host:
        made = await asyncio.wait_for(run_to_end(host, seed), 30)
    (folder / "end.json").write_text(json.dumps(made))


def child(seed, folder, fatal, lives):
    """Let a process live; return how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            logging.disable(logging.CRITICAL)
            asyncio.run(live(seed, folder, fatal, lives))
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def effects(folder):
    """Return what was done."""
    path = folder / "effects"
    return path.read_text().splitlines() if path.exists() else []


def story(seed, root):
    """Let a flow run undisturbed, and another whose first three processes are killed."""
    chance = Random(seed)
    whole, killed = root / f"{seed}-undisturbed", root / f"{seed}-killed"
    for folder in (whole, killed):
        folder.mkdir()
    deaths = [chance.choice([-1, 1]) * chance.randint(1, 2) for _ in range(3)]
    exits = [
        child(seed, whole, 0, 0),
        *(child(seed, killed, fatal, lives) for lives, fatal in enumerate(deaths)),
        child(seed, killed, 0, 9),
    ]
    ends = [json.loads((item / "end.json").read_text()) for item in (whole, killed)]
    return {"exits": exits, "ends": ends, "effects": [effects(whole), effects(killed)]}


if __name__ == "__main__":
    for number in sys.argv[2:]:
        sys.stdout.write(json.dumps(story(int(number), Path(sys.argv[1]))) + "\n")
