"""A process whose children run workflows and kill themselves at a chosen step.

Each child opens the store, takes up what is there, and does what there is to do until its runs
have ended or the chosen step is reached; steps are counted from the child's beginning. A step is a
moment right before or after something is appended, a model is asked, or a tool is called.

Usage: python run_killer.py WORKFLOW FOLDER RUNS. It prints one JSON object for each story.
"""

import asyncio
import gc
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from crash_workflows import PLAYS, Play

from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.sql import SqliteStore
from weft.adapters.system_clock import SystemClock
from weft.adapters.vault import MemoryVault
from weft.engine.events import KIND_NAMES
from weft.engine.events.codec import encode
from weft.errors import UsageError
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.runs.ownership import DEAD_AFTER
from weft.runtime.signals import Answer
from weft.runtime.workflow import Workflow, link
from weft.testing.hosts import OneModel
from weft.testing.models import FunctionModel

ADA = Scope("app", "ada")
WORKERS = 4

#: See `support.effort`, which this program cannot import.
TIMES = int(os.environ.get("WEFT_TORTURE", "1"))

#: Steps that a test expects to be fatal in every sample.
ONCE = ("after tool refund", "after model Router")


class Steps:
    """Counts moments, and kills this process at one of them."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.names: list[str] = []

    def reach(self, name: str) -> None:
        """Reach the next moment."""
        self.names.append(name)
        if len(self.names) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class SteppingStore:
    """A store with a step before and after each append."""

    def __init__(self, store: SqliteStore, steps: Steps) -> None:
        self._store = store
        self._steps = steps

    async def append(self, batch: Any, *, owner: str) -> bool:
        kinds = "+".join(KIND_NAMES[type(event.data)] for event in batch.events)
        self._steps.reach(f"before append {kinds}")
        left = await self._store.append(batch, owner=owner)
        self._steps.reach(f"after append {kinds}")
        return left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class SteppingTools:
    """The tools of a package with a step before and after each call."""

    def __init__(self, tools: Any, steps: Steps) -> None:
        self._tools = tools
        self._steps = steps
        self.schema = tools.schema
        self.validation_error = tools.validation_error

    async def call(self, call: Any) -> Any:
        self._steps.reach(f"before tool {call.name}")
        value = await self._tools.call(call)
        self._steps.reach(f"after tool {call.name}")
        return value


class SteppingLoader(PythonToolLoader):
    """Loads packages whose tools have steps."""

    steps: Steps

    def load(self, digest: str, *rest: Any) -> Any:
        return SteppingTools(super().load(digest, *rest), self.steps)


class LaterClock(SystemClock):
    """The clock of a process that begins when the ones before it count as dead."""

    def __init__(self, lives: int) -> None:
        self._ahead = lives * (DEAD_AFTER + 1000)

    def now(self) -> int:
        return super().now() + self._ahead


def host_of(play: Play, store: Any, steps: Steps, lives: int) -> Host:
    """Return a host in which every step is counted."""
    loader = SteppingLoader()
    loader.steps = steps
    workflow = link(play.spec, play.code, loader)

    def reply(request: Any) -> Any:
        steps.reach(f"before model {request.agent}")
        note = Path(os.environ["WEFT_EFFECTS"])
        with note.open("a") as file:
            file.write(f"{request.key} model {request.agent} {request.call}\n")
        steps.reach(f"after model {request.agent}")
        return play.say(request)

    async def find(_app: str, _name: str) -> Workflow:
        return workflow

    return Host(
        store=store,
        live=MemoryLiveStream(),
        vault=MemoryVault(),
        models=OneModel(FunctionModel(reply)),
        loader=loader,
        clock=LaterClock(lives),
        find=find,
    )


async def live(play: Play, runs: list[str], path: Path, steps: Steps, lives: int) -> dict[str, Any]:
    """Begin the runs or take them up, and bring them to their ends."""
    name = play.spec.orchestrator.workflow_name
    store = await SqliteStore.open(path, clock=LaterClock(lives))
    async with host_of(play, SteppingStore(store, steps), steps, lives) as host:
        await host.recover()
        begun = {row.run for row in await host.runs(scope=ADA)}
        missing = [run for run in runs if run not in begun]
        starts = (host.start(name, scope=ADA, message="hi", run=item) for item in missing)
        await asyncio.gather(*starts)
        ends = await asyncio.gather(*(bring_to_end(play, host, run) for run in runs))
    return {"steps": steps.names, "runs": dict(zip(runs, ends, strict=True))}


async def bring_to_end(play: Play, host: Host, run: str) -> dict[str, Any]:
    """Let a run end; return what became of it."""
    while (await host.settled(run, scope=ADA)).status != "ended":
        await answer(play, host, run)
    state = await host.state(run, scope=ADA)
    return {
        "outcome": [state.outcome, state.reason],
        "variables": dict(state.variables),
        "messages": [[message.role, message.agent, message.text] for message in state.messages],
        "turns": state.turns,
        "calls": state.spent.calls,
        "open": len(state.requests),
        "events": [describe(event) async for event in host.events(run, scope=ADA)],
    }


async def answer(play: Play, host: Host, run: str) -> None:
    """Answer what can be answered once all else is done, else let time pass."""
    asked = await host.requests(scope=ADA, run=run)
    waiting = (await host.run(run, scope=ADA)).status == "waiting"
    for request in asked if waiting else ():
        shown = request.payload["ask"] if isinstance(request.payload, Mapping) else ""
        if shown in play.answers:
            try:
                await host.deliver(run, Answer(request.id, play.answers[shown]), scope=ADA)
            except UsageError:
                continue  # It has expired meanwhile.
    await asyncio.sleep(0.005)


def describe(event: Any) -> list[Any]:
    """Return an event without what depends on the time, and on the processes before."""
    data = json.loads(encode(event.data))
    for name in ("expires_at", "abandoned_by", "retries"):
        data.pop(name, None)
    kind = KIND_NAMES[type(event.data)]
    return [event.seq, event.actor, event.cause, event.turn, kind, data]


def child(play: Play, runs: list[str], folder: Path, fatal: int, lives: int) -> int:
    """Let a process live until its fatal step, after others; return how it ended."""
    pid = os.fork()
    if pid == 0:
        try:
            os.environ["WEFT_EFFECTS"] = str(folder / "effects")
            story = live(play, runs, folder / "store.db", Steps(fatal), lives)
            found = asyncio.run(asyncio.wait_for(story, 30))
            (folder / "end.json").write_text(json.dumps(found))
        except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def recorded(folder: Path) -> dict[str, list[list[Any]]]:
    """Return what stands in the journal, by run."""
    found: dict[str, list[list[Any]]] = {}
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        sql = "SELECT run, seq, actor, cause, kind, data FROM events ORDER BY run, seq"
        try:
            for run, *event in connection.execute(sql):
                found.setdefault(run, []).append(event)
        except sqlite3.OperationalError:
            return {}  # It was killed before there were tables.
    return found


def tell(play: Play, runs: list[str], folder: Path, fatal: list[int]) -> dict[str, Any]:
    """Kill one process after another at the given steps, then let one live; say what was found."""
    folder.mkdir(parents=True)
    exits: list[int] = []
    deaths: list[dict[str, Any]] = []
    for lives, step in enumerate(fatal):
        exits.append(child(play, runs, folder, step, lives))
        deaths.append({"events": recorded(folder), "effects": effects(folder)})
    exits.append(child(play, runs, folder, 0, len(fatal)))
    end = json.loads((folder / "end.json").read_text())
    done = effects(folder)
    return {"fatal": fatal, "exits": exits, "deaths": deaths, "end": end, "effects": done}


def effects(folder: Path) -> list[str]:
    """Return what was done so far."""
    path = folder / "effects"
    return path.read_text().splitlines() if path.exists() else []


def tell_some(play: Play, runs: list[str], root: Path, many: list[list[int]], name: int) -> int:
    """Let another process tell stories into a file; return its id."""
    pid = os.fork()
    if pid == 0:
        try:
            with (root / f"stories-{name}").open("w") as file:
                for fatal in many:
                    folder = root / "killed-at-{}".format("-".join(map(str, fatal)))
                    file.write(json.dumps(tell(play, runs, folder, fatal)) + "\n")
        finally:
            os._exit(0)
    return pid


def deadly_steps(steps: list[str], crowd: int) -> list[list[int]]:
    """Return the steps at which processes are killed: in a crowd random ones, else every step.

    The suite kills at every fourth step only, and wherever a tool or a model has just replied.
    """
    if crowd > 1:
        chance = Random(crowd)
        deaths = 2 * TIMES
        return [[chance.randint(1, len(steps) // 4) for _ in range(3)] for _ in range(deaths)]
    # The last: one process after another comes a little further and is killed.
    chosen = [
        number
        for number, name in enumerate(steps, 1)
        if TIMES > 1 or number % 4 == 1 or name in ONCE or number == len(steps)
    ]
    return [*([number] for number in chosen), [4] * (6 if TIMES > 1 else 2)]


def main() -> None:
    play = PLAYS[sys.argv[1]]()
    root, crowd = Path(sys.argv[2]), int(sys.argv[3])
    runs = [f"run{number}" for number in range(crowd)]
    gc.freeze()
    first = tell(play, runs, root / "undisturbed", [])
    sys.stdout.write(json.dumps(first) + "\n")
    sys.stdout.flush()
    many = deadly_steps(first["end"]["steps"], crowd)
    # Most of the time is spent waiting for the disk, so several wait at once.
    workers = [
        tell_some(play, runs, root, many[number::WORKERS], number) for number in range(WORKERS)
    ]
    for number, worker in enumerate(workers):
        os.waitpid(worker, 0)
        sys.stdout.write((root / f"stories-{number}").read_text())


if __name__ == "__main__":
    main()
