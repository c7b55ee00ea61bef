"""Whatever a package declares at its boundaries: its journal says all, and needs nobody else."""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.boundary_packages import CODE, LINKING, SCRIPTS, VERDICTS, Team, World, packages
from support.boundary_play import Kept
from support.effort import TIMES
from support.run_play import ADA
from weft.context.prompt import digest_of
from weft.engine.events import (
    KIND_NAMES,
    ContextAssembled,
    ModelReplied,
    SurfaceShown,
    ToolReturned,
)
from weft.engine.events.codec import decode, encode
from weft.engine.reduce import fold, reduce
from weft.engine.rows import Batch
from weft.engine.timers import NEVER
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.ports.external import ExternalPorts
from weft.runtime.runs.ownership import DEAD_AFTER
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

#: What happens each time the run has come to rest.
SIGNALS = st.lists(
    st.sampled_from([*["answer"] * 6, *["message", "later"] * 2, "stop", "stop now"]),
    min_size=3,
    max_size=10,
)


class Written(NamedTuple):
    """A batch, and how the world was when it was written."""

    batch: Batch
    now: int
    notes: dict
    #: How many signals had been let in.
    done: int


class Recording(Kept):
    """A store that notes what is written to it, batch by batch: no crash parts a batch."""

    def __init__(self, note, clock):
        super().__init__(clock)
        self._note = note

    async def append(self, batch, *, owner):
        left = await super().append(batch, owner=owner)
        self._note(batch)
        return left


class Story:
    """A run that is led by signals; it may begin where another was broken off."""

    def __init__(self, spec, script, verdict, signals, message, clock=None):
        self.spec, self.signals, self.message = spec, signals, message
        self.script, self.verdict = script, verdict
        self.model = Team(script, verdict)
        self.world, self.clock = World(), clock or ManualClock()
        self.written = []
        self.store = Recording(self._note, self.clock)
        self._done = 0

    def _note(self, batch):
        let_in = batch.expected and any(event.actor.startswith("user:") for event in batch.events)
        written = Written(batch, self.clock.now(), self.world.notes, self._done + bool(let_in))
        self.written.append(written)

    async def broken_off(self, count):
        """Return the same story, broken off after so many batches; all else is lost."""
        last = self.written[count - 1]
        clock = ManualClock(last.now - 2 * DEAD_AFTER)
        twin = Story(self.spec, self.script, self.verdict, self.signals, self.message, clock)
        for written in self.written[:count]:
            await twin.store.append(written.batch, owner="dead")
        await clock.advance(2 * DEAD_AFTER / 1000)
        twin.world.notes, twin._done = last.notes, last.done
        seq = last.batch.row.seq
        sent = self.model.sent.items()
        twin.model.sent = {key: item for key, item in sent if int(key.rpartition(":")[2]) <= seq}
        return twin

    def host(self):
        return host_for(
            self.spec,
            self.model,
            code=CODE,
            store=self.store,
            clock=self.clock,
            outside=self.world.outside,
            linking=LINKING,
            environment={"SOME": "thing"},
        )

    async def lead(self, host):
        """Let signals in, each when the run has come to rest; one that is in is not sent again."""
        while (await host.settled("run", scope=ADA)).status != "ended":
            if self._done == len(self.signals):
                return
            with suppress(UsageError):  # It may not be waited for.
                await self._signal(host, self.signals[self._done])
            self._done += 1

    async def _signal(self, host, kind):
        if kind == "later":
            await self.clock.advance(70)
            async with asyncio.timeout(10):
                while (await self.store.next_due() or NEVER) <= self.clock.now():  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                await host.quiet()
            return
        await host.deliver("run", await self._made(host, kind), scope=ADA)

    async def _made(self, host, kind):
        asked = [
            request for request in await host.requests(scope=ADA, run="run") if request.kind == "ui"
        ]
        if kind == "answer" and asked:
            first = min(asked, key=lambda entry: (entry.agent, str(entry.payload)))
            return Answer(first.id, {"pick": first.agent})
        if kind in ("answer", "message"):
            return UserMessage("go on", id=f"m{self._done}")
        return Stop("after_turn" if kind == "stop" else "now")

    async def play(self):
        """Play the story, from its beginning or from where it was broken off."""
        async with self.host() as host:
            if not self.written:
                await host.start("W", scope=ADA, message=self.message, run="run")
            await host.recover()
            await self.lead(host)
            events = [event async for event in host.events("run", scope=ADA)]
            workflow = await host.workflow("run", scope=ADA)
            return await host.state("run", scope=ADA), events, workflow

    async def forked(self, turn):
        """Let a turn of the run be taken anew, and return that run when it rests."""
        async with self.host() as host:
            run = await host.fork("run", scope=ADA, turn=turn, values={"flag_group": False})
            await host.settled(run, scope=ADA)
            events = [event async for event in host.events(run, scope=ADA)]
            return run, await host.state(run, scope=ADA), events

    async def without_ports(self):
        """Read the run where nothing can be reached and no model answers."""

        def never(_request):
            raise AssertionError("a model is asked")

        async with host_for(
            self.spec,
            FunctionModel(never),
            code=CODE,
            store=self.store,
            clock=self.clock,
            outside=ExternalPorts(),
            linking=LINKING,
        ) as host:
            return await host.state("run", scope=ADA)


def play(story):
    return asyncio.run(asyncio.wait_for(story, 60))


def meaning(state):
    """A state without numbers and times of events."""
    said = [(message.role, message.agent, message.text, message.to) for message in state.messages]
    return {
        "status": state.status,
        "end": (state.outcome, state.reason),
        "variables": dict(state.variables),
        "said": said,
        "turns": state.turn_counts,
        # With the first member that fails its group does, however far the others are.
        "spent": None if "(in the group" in state.reason else state.spent,
        "asked": sorted(
            (request.kind, request.agent, str(request.payload))
            for request in state.requests.values()
        ),
    }


def expect_sent_as_recorded(model, events, workflow):
    recorded = {
        f"app/run:{event.seq}": (event.data.agent, event.data.digest)
        for event in events
        if isinstance(event.data, ContextAssembled)
    }
    for key, (agent, messages, _) in model.sent.items():
        assert recorded[key] == (agent, digest_of(messages, workflow.views[agent].extras))


def expect_replayed(story, state, events, workflow, cut):
    """Folding gives the state: twice, in parts, as it was written, where nothing can be reached."""
    compiled = workflow.compiled
    part = fold(compiled, "run", events[:cut])
    for event in events[cut:]:
        part, _ = reduce(compiled, part, event)
    kinds = [KIND_NAMES[type(event.data)] for event in events]
    read = [
        event._replace(data=decode(kind, encode(event.data)))
        for kind, event in zip(kinds, events, strict=True)
    ]
    assert part == state == fold(compiled, "run", events) == fold(compiled, "run", read)
    assert play(story.without_ports()) == state
    assert check_replay(workflow, "run", events) == []


def expect_done_once(story, events, workflow):
    """Nothing that was recorded was asked for again, and models were sent what is recorded."""
    for kind in (ModelReplied, ToolReturned):
        causes = [
            event.cause
            for event in events
            if isinstance(event.data, kind) and event.actor != "engine"
        ]
        assert len(causes) == len(set(causes)), "a result is recorded once"
    surfaces = [
        (event.data.call, event.data.number)
        for event in events
        if isinstance(event.data, SurfaceShown)
    ]
    assert len(surfaces) == len(set(surfaces)), "a surface is shown once"
    expect_sent_as_recorded(story.model, events, workflow)


@settings(
    max_examples=10 * TIMES,
    derandomize=TIMES == 1,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(packages(), SCRIPTS, VERDICTS, SIGNALS, st.sampled_from(["hello", None]), st.data())
def test_run_interrupted_anywhere_continues_identically(
    spec, script, verdict, signals, message, data
):
    whole = Story(spec, script, verdict, signals, message)
    state, events, workflow = play(whole.play())
    expect_replayed(whole, state, events, workflow, data.draw(st.integers(0, len(events))))
    expect_done_once(whole, events, workflow)
    for _ in range(2):
        count = data.draw(st.integers(1, len(whole.written)))
        twin = play(whole.broken_off(count))
        again, since, _ = play(twin.play())
        assert meaning(again) == meaning(state)
        assert twin.world.notes == whole.world.notes
        assert check_replay(workflow, "run", since) == []
        expect_done_once(twin, since, workflow)
    if state.turns:
        run, child, since = play(whole.forked(data.draw(st.integers(1, state.turns))))
        assert fold(workflow.compiled, run, since) == child
        assert check_replay(workflow, run, since) == []
