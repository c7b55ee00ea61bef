"""Simulated runs: a workflow runs with made-up models and people until all is covered."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.memory.store import MemoryStore
from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import Steering
from weft.adapters.models.sample_values import allowed_at, matching_text, put_at, sample_value
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.vault import MemoryVault
from weft.app.simulated.coverage import Coverage
from weft.app.simulated.made_up import SimulatedWorld
from weft.app.simulated.stand_ins import link_stand_ins
from weft.check.subject import Subject
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import ToolRequest
from weft.engine.rows import Batch, RequestRow
from weft.engine.variables.triggers import dig
from weft.errors import WeftError
from weft.findings import Json
from weft.generator.judge.simulation import SimulatedRun, Simulation
from weft.ports.clock import Clock
from weft.ports.model import ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, UserMessage
from weft.runtime.tools.forms import APPROVAL
from weft.runtime.workflow import Workflow
from weft.spec.orchestrator import WorkflowDependencies
from weft.spec.part import JsonMap
from weft.spec.tools import AgentTool, UiTool
from weft.spec.triggers import TimerExpiredTrigger, Trigger, UserTextTrigger
from weft.spec.type_meaning import json_schema
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec
from weft.testing.clock import ManualClock

#: Counted, not timed, so that the result is the same on every machine: about 1.5 s of CPU.
MOST_RUNS: Final = 40
MOST_TURNS: Final = 600

#: Real seconds of one run, and of silence before the clock is advanced.
RUN_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 1.0

#: Seconds by which the clock is advanced, and how often while nothing happens.
_FORWARD: Final = 3600.0
_MOST_FORWARD: Final = 24

#: The probability that a person's message matches a trigger.
_HEARD: Final = 0.5

#: The probability that people wait for an hour before they answer.
_SLOW: Final = 0.1

#: The probability of a tool call with minimal arguments, such as no items and small numbers.
_LEAST: Final = 0.3

#: The user of `weft run`, whom tools with a directory of people know.
_USER: Final = "me"


def simulate(
    spec: WorkflowSpec, code: Mapping[str, bytes], *, run_seconds: float = RUN_SECONDS
) -> Simulation:
    """Run a workflow until everything the explorer knows is covered, or a limit is reached.

    The code is read and not executed: stand-ins take its place. The runs have an event loop of
    their own, so that a thread of a tool may call this. Nothing leaves the machine.
    """
    if spec.board is not None or spec.flow is not None:
        return Simulation(problems=("only conversations can be simulated",))
    # Required workflows count as completed.
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
    world = SimulatedWorld(subject, coverage.compiled, coverage.values_of)
    runs: list[SimulatedRun] = []
    problems: dict[str, None] = {}
    loader = PythonToolLoader()
    try:
        workflow = link_stand_ins(subject, coverage, loader)
    except WeftError as error:
        loader.close()
        return _told(coverage, (), (f"the workflow cannot be linked: {error}",))
    clock = ManualClock()
    host = _host(workflow, loader, clock, coverage, world)
    async with host:
        stage = _Stage(host, clock, coverage, world)
        for seed in range(MOST_RUNS):
            if (coverage.done and runs) or sum(run.turns for run in runs) >= MOST_TURNS:
                break
            run, problem = await stage.play(seed, run_seconds)
            runs.append(run)
            if problem:
                problems[problem] = None
            if run.outcome == "hung":  # The next run would take as long.
                break
    return _told(coverage, tuple(runs), (*problems, *coverage.failures))


def _told(
    coverage: Coverage, runs: tuple[SimulatedRun, ...], problems: tuple[str, ...]
) -> Simulation:
    groups = (f"{', '.join(group.members)} -> {group.next}" for group in coverage.groups.values())
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
    world: SimulatedWorld,
) -> Host:
    async def find(_app: str, _name: str) -> Workflow:
        return workflow

    return Host(
        store=_watched_store(coverage, clock),
        live=MemoryLiveStream(),
        vault=MemoryVault(),
        models=_Models(coverage),
        loader=loader,
        clock=clock,
        find=find,
        environment=world.environment(),
        outside=world.outside(),
    )


def _watched_store(coverage: Coverage, clock: Clock) -> MemoryStore:
    """Return a store in memory that reports every event when it is appended."""
    store = MemoryStore(clock)
    append = store.append

    async def report(batch: Batch, *, owner: str) -> bool:
        left = await append(batch, owner=owner)
        for event in batch.events:
            coverage.note(batch.row.app, event)
        return left

    store.append = report
    return store


class _Models:
    """Returns a model for each run, which is its own tenant, with its seed."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> "_Model":  # noqa: ARG002
        return _Model(scope.app, _seed_of(scope.app), self._coverage)

    async def close(self) -> None:
        """Nothing is open."""


class _Model:
    """A sample model that prefers what no run has reached."""

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
        kept = {move.what: [path for path, _ in move.places] for move in moves}
        requests = (_least(call, request, kept.get(call.tool, ())) for call in reply.tool_requests)
        return replace(reply, tool_requests=tuple(requests))


class _Least(Random):
    """A random generator that always returns the least value."""

    def random(self) -> float:
        return 0.0

    def getrandbits(self, k: int, /) -> int:  # noqa: ARG002 - none is set
        return 0


def _least(
    call: ToolRequest, request: ModelRequest, kept: Collection[tuple[str, ...]]
) -> ToolRequest:
    """Return a call with minimal arguments; values that rules compare are kept."""
    schema = next(tool.parameters for tool in request.tools if tool.name == call.tool)
    arguments = as_object(sample_value(schema, _Least())) or {}
    values = ((path, dig(call.arguments, path)) for path in kept)
    put_at(arguments, tuple((path, value) for path, value in values if value is not None))
    return replace(call, arguments=arguments)


def _name_of(seed: int) -> str:
    return f"sample-{seed}"


def _seed_of(app: str) -> int:
    return int(app.rpartition("-")[2])


class _Stage:
    """Performs runs one after the other, with all people in them."""

    def __init__(
        self, host: Host, clock: ManualClock, coverage: Coverage, world: SimulatedWorld
    ) -> None:
        self._host = host
        self._clock = clock
        self._coverage = coverage
        self._world = world
        self._heard = [*_words_heard(coverage.spec)]
        #: Whether the workflow has timers.
        self._timed = any(
            isinstance(trigger, TimerExpiredTrigger) for trigger in _triggers(coverage.spec)
        )

    async def play(self, seed: int, seconds: float) -> tuple[SimulatedRun, str]:
        """Perform one run to its end; also return its error, if any."""
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
        messages = {"max_turns": f"a run did not end within its {course.turns} turns"}
        return run, messages.get(outcome) or f"a run {_ENDED.get(outcome, outcome)}: {reason}"

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
            # The row only: folding the whole state every time would be slow.
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
        """Return when a run waits or has ended; False if it sleeps and the clock was advanced."""
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
        """Return a message, perhaps one that a trigger matches."""
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


_ENDED: Final = {"failed": "failed", "cancelled": "was stopped", "hung": "did not end"}


def _words_heard(spec: WorkflowSpec) -> list[str]:
    """Return messages that set a variable."""
    matches = [trigger.match for trigger in _triggers(spec) if isinstance(trigger, UserTextTrigger)]
    return [text for match in matches if (text := matching_text(match))]


def _triggers(spec: WorkflowSpec) -> list[Trigger | None]:
    """Return all triggers."""
    sources = [
        variable.source
        for variable in spec.variables.values()
        if isinstance(variable.source, DerivedSource)
    ]
    changes = [transition.trigger for source in sources for transition in source.transitions]
    return [*(trigger for source in sources for trigger in source.triggers), *changes]


def _whose(scope: Scope, addressee: str) -> Scope:
    """Return the scope of the addressee."""
    kind, _, name = addressee.partition(":")
    match kind:
        case "user":
            return Scope(scope.app, name)
        case "role":
            return Scope(scope.app, _USER, roles=(name,))
        case "group":
            return Scope(scope.app, _USER, groups=(name,))
        case _:
            return scope


#: The probability of an answer that leads on.
_LEADING: Final = 0.5

#: The message of a person to an agent.
SAMPLE_MESSAGE: Final = "[sample] Here a person would say something."


def sample_answer(
    compiled: CompiledWorkflow,
    steering: Steering,
    tool: str,
    random: Random,
    tools: Sequence[AgentTool | UiTool] = (),
) -> Json:
    """Return a valid answer to a tool, preferably one that sets variables of rules.

    Automatic tools, which agents do not choose, are looked up in `tools`.
    """
    schema = _response_schema(compiled, tool, tools)
    value: Json = {} if schema is None else sample_value(schema, random)
    fields = as_object(value)
    if fields is None:
        return value
    if schema is None:
        for setting in compiled.triggers.ui_response.get(tool, ()):
            type_ = json_schema(compiled.variables[setting.variable].type, compiled.models)
            if setting.path is not None:
                put_at(fields, ((setting.path, sample_value(type_, random)),))
    leading = [
        answer for answer in steering.answers.get(tool, ()) if allowed_at(schema or {}, answer)
    ]
    if leading and random.random() < _LEADING:
        put_at(fields, random.choice(leading))
    return value


def _response_schema(
    compiled: CompiledWorkflow, tool: str, tools: Sequence[AgentTool | UiTool]
) -> JsonMap | None:
    chosen = (tool for part in compiled.agents.values() for tool in part.tools.values())
    for declared in (*chosen, *tools):
        if isinstance(declared, UiTool) and declared.function == tool and declared.response_schema:
            return declared.response_schema
    return None
