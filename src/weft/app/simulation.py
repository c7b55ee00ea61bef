"""Simulated runs: a workflow is played with made-up models and people until it did all it can."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from weft.adapters.memory import MemoryJournal
from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import Steering
from weft.adapters.models.sample_values import matching_text, put_at, sample_value
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.app.coverage import Coverage
from weft.app.made_up import MadeUp
from weft.check.subject import Subject
from weft.engine.events import ToolRequest
from weft.engine.rows import Batch, RequestRow
from weft.engine.variables.triggers import dig
from weft.errors import WeftError
from weft.findings import Json
from weft.generator.simulation import SimulatedRun, Simulation
from weft.ports.model import ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, UserMessage
from weft.runtime.tools.forms import APPROVAL
from weft.runtime.workflow import Workflow, link
from weft.spec.orchestrator import WorkflowDependencies
from weft.spec.triggers import TimerExpiredTrigger, Trigger, UserTextTrigger
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec
from weft.testing.clock import ManualClock
from weft.testing.people import SAMPLE_MESSAGE, sample_answer

#: Counted, not timed, so that the result is the same on every machine: about 1.5 s of CPU.
MOST_RUNS: Final = 40
MOST_TURNS: Final = 600

#: Real seconds that one run may take, and that may pass in silence before the clock is moved on.
RUN_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 1.0

#: Seconds by which the clock is moved on, and how often that is done while nothing happens.
_FORWARD: Final = 3600.0
_MOST_FORWARD: Final = 24

#: How likely a person says what some trigger waits for.
_HEARD: Final = 0.5

#: How likely people let an hour pass before they answer.
_SLOW: Final = 0.1

#: How likely a tool is called with the least that fits, such as no items and small numbers.
_LEAST: Final = 0.3

#: The one that `weft run` has: tools that know people know this one.
_USER: Final = "me"


def simulate(
    spec: WorkflowSpec, code: Mapping[str, bytes], *, run_seconds: float = RUN_SECONDS
) -> Simulation:
    """Play a workflow until its runs came to everything the explorer knows, or it is enough.

    The code is executed. It is done in an event loop of its own, so a thread of a tool may call
    it. Nothing leaves the machine.
    """
    if spec.board is not None or spec.flow is not None:
        return Simulation(problems=("only conversations can be simulated",))
    # What must have been completed before is taken for completed.
    alone = {"workflow_dependencies": WorkflowDependencies()}
    orchestrator = spec.orchestrator.model_copy(update=alone)
    spec = spec.model_copy(update={"orchestrator": orchestrator})
    return asyncio.run(_simulated(spec, code, run_seconds))


async def _simulated(
    spec: WorkflowSpec, code: Mapping[str, bytes], run_seconds: float
) -> Simulation:
    texts = {path: raw.decode("utf-8-sig") for path, raw in code.items()}
    subject = Subject(spec, code=texts)
    coverage = Coverage(subject)
    world = MadeUp(subject, coverage.compiled, coverage.values_of)
    runs: list[SimulatedRun] = []
    problems: dict[str, None] = {}
    loader = PythonToolLoader()
    try:
        workflow = link(spec, code, loader)
    except WeftError as error:
        loader.close()
        return _told(coverage, (), (f"the workflow cannot be linked: {error}",))
    clock = ManualClock()
    host = _host(workflow, loader, clock, coverage, world)
    async with host:
        stage = _Stage(host, clock, coverage, world)
        for seed in range(MOST_RUNS):
            if (coverage.done and runs) or sum(it.turns for it in runs) >= MOST_TURNS:
                break
            run, problem = await stage.play(seed, run_seconds)
            runs.append(run)
            if problem:
                problems[problem] = None
            if run.outcome == "hung":  # The next would only take as long again.
                break
    return _told(coverage, tuple(runs), (*problems, *coverage.failures))


def _told(
    coverage: Coverage, runs: tuple[SimulatedRun, ...], problems: tuple[str, ...]
) -> Simulation:
    groups = (f"{', '.join(it.members)} -> {it.next}" for it in coverage.groups.values())
    return Simulation(
        runs=runs,
        unvisited_agents=tuple(coverage.agents),
        unvisited_rules=(*map(coverage.words, coverage.rules), *groups),
        ungiven_answers=tuple(map(str, coverage.answers)),
        problems=problems,
        limited=coverage.limited,
    )


def _host(
    workflow: Workflow,
    loader: PythonToolLoader,
    clock: ManualClock,
    coverage: Coverage,
    world: MadeUp,
) -> Host:
    async def find(_: str) -> Workflow:
        return workflow

    return Host(
        journal=_Watched(coverage),
        models=_Models(coverage),
        loader=loader,
        clock=clock,
        find=find,
        environment=world.environment(),
        outside=world.outside(),
    )


class _Watched(MemoryJournal):
    """Tells what happens as soon as it is written."""

    def __init__(self, coverage: Coverage) -> None:
        super().__init__()
        self._coverage = coverage

    async def append(self, batch: Batch) -> None:
        await super().append(batch)
        for event in batch.events:
            self._coverage.note(batch.row.app, event)


class _Models:
    """Gives each run, which is a tenant of its own, a model with its seed."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> "_Model":  # noqa: ARG002
        return _Model(scope.app, _seed_of(scope.app), self._coverage)

    async def close(self) -> None:
        """Nothing is open."""


class _Model:
    """A sample model that goes where no run has been."""

    def __init__(self, run: str, seed: int, coverage: Coverage) -> None:
        self._run = run
        self._seed = seed
        self._coverage = coverage

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        steering = self._coverage.steering(self._run, request, self._seed)
        reply = await SampleModel(self._seed, steering).reply(request, on_text)
        random = Random(f"{self._seed}:{request.key}")  # noqa: S311
        if not reply.tool_requests or random.random() >= _LEAST:
            return reply
        moves = steering.moves.get(request.agent, ())
        kept = {it.what: [path for path, _ in it.places] for it in moves}
        requests = (_least(it, request, kept.get(it.tool, ())) for it in reply.tool_requests)
        return replace(reply, tool_requests=tuple(requests))


class _Least(Random):
    """Draws the least there is."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, k: int, /) -> int:  # noqa: ARG002 - none is set
        return 0


def _least(
    call: ToolRequest, request: ModelRequest, kept: Collection[tuple[str, ...]]
) -> ToolRequest:
    """Return a call with the least arguments there are; what rules look at stays as it is."""
    schema = next(it.parameters for it in request.tools if it.name == call.tool)
    arguments = as_object(sample_value(schema, _Least())) or {}
    told = ((path, dig(call.arguments, path)) for path in kept)
    put_at(arguments, tuple((path, value) for path, value in told if value is not None))
    return replace(call, arguments=arguments)


def _name_of(seed: int) -> str:
    return f"sample-{seed}"


def _seed_of(app: str) -> int:
    return int(app.rpartition("-")[2])


class _Stage:
    """Plays runs one after the other, and all the people in them."""

    def __init__(self, host: Host, clock: ManualClock, coverage: Coverage, world: MadeUp) -> None:
        self._host = host
        self._clock = clock
        self._coverage = coverage
        self._world = world
        self._heard = [*_words_heard(coverage.spec)]
        #: Whether it matters that time passes; all who sleep wake many times in an hour.
        self._timed = any(isinstance(it, TimerExpiredTrigger) for it in _triggers(coverage.spec))

    async def play(self, seed: int, seconds: float) -> tuple[SimulatedRun, str]:
        """Play one run to its end; also return what is wrong, or nothing."""
        scope = Scope(_name_of(seed), _USER)
        coverage = self._coverage
        coverage.begin(scope.app, seed)
        outcome, reason = "hung", ""
        try:
            async with asyncio.timeout(seconds):
                outcome, reason = await self._played(scope, Random(seed))  # noqa: S311
        except TimeoutError:
            reason = f"it took more than {seconds:g} s"
        except WeftError as error:
            reason = f"it stopped: {error}"
        coverage.end(scope.app)
        course = coverage.courses[scope.app]
        run = SimulatedRun(
            seed=seed,
            outcome=outcome,
            turns=course.turns,
            agents=tuple(course.agents),
            handoffs=tuple(map(coverage.words, course.rules)),
        )
        if outcome == "completed":
            return run, ""
        told = {"max_turns": f"a run did not end within its {course.turns} turns"}
        return run, told.get(outcome) or f"a run {_ENDED.get(outcome, outcome)}: {reason}"

    async def _played(self, scope: Scope, random: Random) -> tuple[str, str]:
        host, spec = self._host, self._coverage.spec
        attended = self._coverage.compiled.startup == "UserDriven"
        run = await host.start(
            spec.orchestrator.workflow_name,
            scope=scope,
            message=self._said(random) if attended else None,
            values=self._world.start_values(scope.app),
            input=self._world.input(scope.app),
        )
        forward = 0
        while forward < _MOST_FORWARD:
            if not await self._rested(run, scope):
                forward += 1
                continue
            # At a glance: the whole state would be folded from all events every time.
            row = await host.run(run, scope=scope)
            if row.status == "ended":
                return str(row.outcome), row.reason
            requests = await host.requests(scope=scope, run=run)
            forward = 0 if requests else forward + 1
            if not requests or (random.random() < _SLOW and self._timed):
                await self._clock.advance(_FORWARD)
                continue
            for request in requests:
                await self._answer(run, request, scope, random)
        return "hung", "it waits for something that never happens"

    async def _rested(self, run: str, scope: Scope) -> bool:
        """Return when a run waits or has ended; False if it sleeps, and the clock was moved on."""
        settled = asyncio.ensure_future(self._host.settled(run, scope=scope))
        try:
            done, _ = await asyncio.wait({settled}, timeout=SILENT_SECONDS)
            if done:
                await settled
                return True
            await self._clock.advance(_FORWARD)
            return False
        finally:
            settled.cancel()

    async def _answer(self, run: str, request: RequestRow, scope: Scope, random: Random) -> None:
        if request.kind == "chat":
            said = UserMessage(self._said(random), id=request.id)
            await self._host.deliver(run, said, scope=scope)
            return
        value = self._answered(scope.app, request.tool or "", random)
        whose = _whose(scope, request.addressee)
        await self._host.deliver(run, Answer(request.id, value), scope=whose)

    def _said(self, random: Random) -> str:
        """Say something: perhaps what some trigger waits for."""
        if self._heard and random.random() < _HEARD:
            return random.choice(self._heard)
        return SAMPLE_MESSAGE

    def _answered(self, run: str, tool: str, random: Random) -> Json:
        if tool.startswith(APPROVAL):
            return {"approved": True}
        coverage = self._coverage
        value = sample_answer(coverage.compiled, Steering(), tool, random, coverage.spec.tools)
        fields = as_object(value)
        if fields is not None:
            put_at(fields, coverage.answer(run, tool, random))
        return value


_ENDED: Final = {"failed": "failed", "cancelled": "was stopped", "hung": "came to no end"}


def _words_heard(spec: WorkflowSpec) -> list[str]:
    """Return what people may say that sets a variable."""
    matches = [it.match for it in _triggers(spec) if isinstance(it, UserTextTrigger)]
    return [text for it in matches if (text := matching_text(it))]


def _triggers(spec: WorkflowSpec) -> list[Trigger | None]:
    """Return everything that sets a variable."""
    sources = [it.source for it in spec.variables.values() if isinstance(it.source, DerivedSource)]
    changes = [it.trigger for source in sources for it in source.transitions]
    return [*(it for source in sources for it in source.triggers), *changes]


def _whose(scope: Scope, addressee: str) -> Scope:
    """Return the scope of the person who is asked."""
    kind, _, name = addressee.partition(":")
    match kind:
        case "user":
            return Scope(scope.app, name)
        case "role":
            return Scope(scope.app, scope.user, roles=(name,))
        case "group":
            return Scope(scope.app, scope.user, groups=(name,))
        case _:
            return scope
