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
from weft.errors import UsageError
from weft.inspect.replay import check_replay
from weft.ports.external import ExternalPorts
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
    """A journal that tells what is written to it, batch by batch: no crash parts a batch."""

    def __init__(self, note):
        super().__init__()
        self._note = note

    async def append(self, batch):
        await super().append(batch)
        self._note(batch)


class Story:
    """A run that is led by signals; it may begin where another was broken off."""

    def __init__(self, spec, script, verdict, signals, message):
        self.spec, self.signals, self.message = spec, signals, message
        self.script, self.verdict = script, verdict
        self.model = Team(script, verdict)
        self.world, self.clock = World(), ManualClock()
        self.written = []
        self.journal = Recording(self._note)
        self._done = 0

    def _note(self, batch):
        let_in = batch.expected and any(it.actor.startswith("user:") for it in batch.events)
        written = Written(batch, self.clock.now(), self.world.notes, self._done + bool(let_in))
        self.written.append(written)

    async def broken_off(self, count):
        """Return the same story, broken off after so many batches; all else is lost."""
        twin = Story(self.spec, self.script, self.verdict, self.signals, self.message)
        for it in self.written[:count]:
            await twin.journal.append(it.batch)
        last = self.written[count - 1]
        twin.clock = ManualClock(last.now)
        twin.world.notes, twin._done = last.notes, last.done
        seq = last.batch.row.seq
        sent = self.model.sent.items()
        twin.model.sent = {key: it for key, it in sent if int(key.rpartition(":")[2]) <= seq}
        return twin

    def host(self):
        return host_for(
            self.spec,
            self.model,
            code=CODE,
            journal=self.journal,
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
                while await self.journal.due(self.clock.now()):  # noqa: ASYNC110
                    await asyncio.sleep(0)
            return
        await host.deliver("run", await self._made(host, kind), scope=ADA)

    async def _made(self, host, kind):
        asked = [it for it in await host.requests(scope=ADA, run="run") if it.kind == "ui"]
        if kind == "answer" and asked:
            first = min(asked, key=lambda it: (it.agent, str(it.payload)))
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
            events = [it async for it in host.events("run", scope=ADA)]
            workflow = await host.workflow("run", scope=ADA)
            return await host.state("run", scope=ADA), events, workflow

    async def forked(self, turn):
        """Let a turn of the run be taken anew, and return that run when it rests."""
        async with self.host() as host:
            run = await host.fork("run", scope=ADA, turn=turn, values={"flag_group": False})
            await host.settled(run, scope=ADA)
            events = [it async for it in host.events(run, scope=ADA)]
            return run, await host.state(run, scope=ADA), events

    async def without_ports(self):
        """Read the run where nothing can be reached and no model answers."""

        def never(_request):
            raise AssertionError("a model is asked")

        async with host_for(
            self.spec,
            FunctionModel(never),
            code=CODE,
            journal=self.journal,
            clock=self.clock,
            outside=ExternalPorts(),
            linking=LINKING,
        ) as host:
            return await host.state("run", scope=ADA)


def play(story):
    return asyncio.run(asyncio.wait_for(story, 60))


def meaning(state):
    """A state without numbers and times of events."""
    said = [(it.role, it.agent, it.text, it.to) for it in state.messages]
    return {
        "status": state.status,
        "end": (state.outcome, state.reason),
        "variables": dict(state.variables),
        "said": said,
        "turns": state.turn_counts,
        # With the first member that fails its group does, however far the others are.
        "spent": None if "(in the group" in state.reason else state.spent,
        "asked": sorted((it.kind, it.agent, str(it.payload)) for it in state.requests.values()),
    }


def expect_sent_as_recorded(model, events, workflow):
    recorded = {
        f"app/run:{it.seq}": (it.data.agent, it.data.digest)
        for it in events
        if isinstance(it.data, ContextAssembled)
    }
    for key, (agent, messages, _) in model.sent.items():
        assert recorded[key] == (agent, digest_of(messages, workflow.views[agent].extras))


def expect_replayed(story, state, events, workflow, cut):
    """Folding gives the state: twice, in parts, as it was written, where nothing can be reached."""
    compiled = workflow.compiled
    part = fold(compiled, "run", events[:cut])
    for event in events[cut:]:
        part, _ = reduce(compiled, part, event)
    kinds = [KIND_NAMES[type(it.data)] for it in events]
    read = [
        it._replace(data=decode(kind, encode(it.data)))
        for kind, it in zip(kinds, events, strict=True)
    ]
    assert part == state == fold(compiled, "run", events) == fold(compiled, "run", read)
    assert play(story.without_ports()) == state
    assert check_replay(workflow, "run", events) == []


def expect_done_once(story, events, workflow):
    """Nothing that was recorded was asked for again, and models were sent what is recorded."""
    for kind in (ModelReplied, ToolReturned):
        causes = [it.cause for it in events if isinstance(it.data, kind) and it.actor != "engine"]
        assert len(causes) == len(set(causes)), "a result is recorded once"
    surfaces = [
        (it.data.call, it.data.number) for it in events if isinstance(it.data, SurfaceShown)
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
def test_a_journal_needs_no_ports_and_a_run_broken_off_anywhere_goes_on_as_if_nothing_was(
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
