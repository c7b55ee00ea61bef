"""Runs the scenarios of packages: in memory, with scripted models and people."""

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Final, cast

from weft.adapters.files import WorkspaceFiles
from weft.adapters.models.provider_errors import as_object
from weft.adapters.models.sample import SampleModel
from weft.adapters.models.sample_moves import steering_of
from weft.adapters.models.sample_values import sample_value
from weft.app.simulated.made_up import SimulatedWorld
from weft.app.simulated.stand_ins import answering_code, decided_by_code, set_by_code
from weft.check.subject import Subject
from weft.context.audience import Audience
from weft.context.segment import shown
from weft.engine import events as kinds
from weft.engine.compile import compile_workflow
from weft.engine.events import Event
from weft.engine.flow.plan import APPROVAL
from weft.engine.rows import OpenRequest, RunRow
from weft.engine.timers import NEVER
from weft.errors import UsageError, WeftError
from weft.findings import Finding, Json
from weft.findings import Path as KeyPath
from weft.generator.judge.simulation import ScenarioRun
from weft.ids import USER
from weft.packages.reader import Package
from weft.packages.scenarios import UNDO, ScenarioFile, cases_of, read_scenarios
from weft.packages.workspace import PACKAGES
from weft.ports.model import Model, ModelReply, ModelRequest
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.signals import Answer, CancelRequest, Signal, Stop, UserMessage
from weft.runtime.workflow import LINKING, Linking, Workflow
from weft.spec.orchestrator import WorkflowDependencies
from weft.spec.scenario import ANY_TURNS, Expected, Scenario, ScenarioCase, ScenarioStep
from weft.spec.variables import EnvironmentSource, ExternalSource
from weft.spec.workflow import WorkflowSpec
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, ScriptedModel
from weft.testing.retrieval import WordEmbedder
from weft.wire.events import user_event_data
from weft.wire.findings import finding_data

#: The tenant and the user of runs, and the scope of all of them.
_APP: Final = "test"
_ME: Final = "me"
_ALL: Final = Scope.operator(_APP)

#: The seconds a scenario may take, and how often time passes by itself for a timer.
SECONDS: Final = 60.0
_MOST_TIMERS: Final = 100

#: The longest value in a finding, and the most errors of the run.
_LONGEST: Final = 500
_MOST_ERRORS: Final = 3

#: What is an error on the way; and the outcomes that a scenario must name to expect them.
_ERRORS: Final = (kinds.OutputRefused, kinds.ToolFailed, kinds.TurnFailed, kinds.VariableRefused)
_BAD: Final = ("failed", "max_turns")


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """How a scenario went."""

    package: str
    name: str
    #: What was otherwise than it says, by the path of the value in the file; or what is wrong with
    #: the file.
    findings: Mapping[KeyPath, Finding]
    #: What the case with the differences expects, and how its run went.
    course: "tuple[Expected, RunFacts] | None" = None

    def as_json(self) -> dict[str, Json]:
        """Return the result as JSON can hold it."""
        findings = [{**finding_data(each), "path": path} for path, each in self.findings.items()]
        head = {"package": self.package, "name": self.name, "passed": not findings}
        return {**head, "findings": findings}


async def run_scenario(
    package: Package, file: ScenarioFile, linking: Linking = LINKING
) -> ScenarioResult:
    """Run one scenario. The code of the package is executed; nothing is stored."""
    if file.scenario is None or file.errors:
        errors: dict[KeyPath, Finding] = {(at,): each for at, each in enumerate(file.errors)}
        return ScenarioResult(package.name, file.name, errors)
    play = _Play(package, file, file.scenario)
    try:
        async with asyncio.timeout(SECONDS):
            await play.run(linking)
    except TimeoutError:
        play.differ((), f"the scenario did not end within {SECONDS:g} s")
    except WeftError as error:
        play.differ((), f"the scenario cannot run: {error}", *_hint(error))
    return ScenarioResult(package.name, file.name, play.differences, play.course)


def _hint(error: WeftError) -> tuple[str, ...]:
    return (error.hint,) if isinstance(error, UsageError) and error.hint else ()


class _Play:
    """One scenario: its cases one after the other, and what was otherwise."""

    #: Of the present case: its model, the user of its run, and the run.
    _model: Model
    _me: Scope
    _run: str = ""
    _host: Host

    def __init__(self, package: Package, file: ScenarioFile, scenario: Scenario) -> None:
        # Required workflows count as completed.
        alone = {"workflow_dependencies": WorkflowDependencies()}
        orchestrator = package.spec.orchestrator.model_copy(update=alone)
        self._spec = package.spec.model_copy(update={"orchestrator": orchestrator})
        self._package = package
        self._file = file
        self._scenario = scenario
        self._clock = ManualClock()
        self.differences: dict[KeyPath, Finding] = {}
        self.course: tuple[Expected, RunFacts] | None = None

    async def run(self, linking: Linking) -> None:
        """Run all cases, until one differs. Raises WeftError if the package cannot run."""
        package, scenario = self._package, self._scenario
        code = {path: raw.decode("utf-8-sig") for path, raw in package.code.items()}
        subject = Subject(self._spec, code=code)
        world = SimulatedWorld(subject, compile_workflow(self._spec, linking.kinds), lambda _: ())
        environment = world.environment()
        for name, source in subject.sources(EnvironmentSource):
            # Their defaults count, and the values of the scenario.
            if not source.required and not self._spec.variables[name].secret:
                environment.pop(source.env_var, None)
        home = package.folder.resolve().parent
        files = WorkspaceFiles(home.parent if home.name == PACKAGES else home)
        outside = replace(world.outside(), environment=environment, embedder=WordEmbedder())
        async with host_for(
            self._spec,
            FunctionModel(self._reply),
            code=package.code,
            clock=self._clock,
            outside=replace(outside, files=files),
            documents=scenario.documents,
            tools=scenario.tools,
            linking=linking,
        ) as self._host:
            workflow = await self._host.current_workflow(package.name, app=_APP)
            for path, case in cases_of(scenario):
                world.given.update(case.values)
                self._me = Scope(_APP, case.user or scenario.user or _ME)
                is_made_up = case.replies == "sample"
                script = ScriptedModel({} if case.replies == "sample" else case.replies)
                self._mistakes = _mistakes(script, workflow)
                self._model = SampleModel(0, steering_of(subject)) if is_made_up else script
                await self._play(case, path)
                if script.left and not self.differences:
                    self.differ((*path, "replies"), f"{script.left} replies were not used")
                if self.differences:
                    if self._run:
                        self.course = (case.expect, await facts_of(self._host, await self._rest()))
                    return

    async def _reply(self, request: ModelRequest) -> ModelReply:
        return await self._model.reply(request)

    def differ(self, path: KeyPath, message: str, *cause: str) -> None:
        """Note what was otherwise."""
        place = self._file.document.place(path)
        self.differences[path] = Finding("TEST001", "error", message, place, cause=cause)

    async def _play(self, case: ScenarioCase, path: KeyPath) -> None:
        """Start the run of a case, do the steps, and compare."""
        try:
            self._run = ""
            self._run = await self._start(case)
        except WeftError as error:
            self.differ(path, f"the run does not start: {error}", *_hint(error))
            return
        for number, step in enumerate(case.steps):
            fault = await self._do(step, await self._rest())
            if fault:
                self.differ((*path, "steps", number), *fault)
                return
        row = await self._rest()
        facts = await facts_of(self._host, row)
        errors = [f"in the run: {_cut(error)}" for error in facts.errors[:_MOST_ERRORS]]
        errors += self._mistakes
        for inner, message, expected, got in _differences(case.expect, facts, _ended(row)):
            cause = (f"expected: {_cut(expected)}", f"got: {_cut(got)}", *errors)
            self.differ((*path, "expect", *inner), message, *cause)
            errors.clear()  # One difference names them.

    async def _start(self, case: ScenarioCase) -> str:
        name, variables = self._package.name, self._spec.variables
        values = {
            key: value
            for key, value in case.values.items()
            if not isinstance(variables[key].source, ExternalSource)
        }
        if self._spec.board is None:
            return await self._host.start(
                name, scope=self._me, message=case.message, values=values, input=case.input
            )
        run, correlation = "", None
        for type_, given in (case.input or {}).items():
            for payload in given if isinstance(given, list) else [given]:
                made = await self._host.publish(
                    name, type_, payload, scope=self._me, correlation=correlation
                )
                run, correlation = made.run, made.correlation_id
        return run

    async def _rest(self) -> RunRow:
        """Return when the run waits for a person or has ended; for a timer alone, time passes."""
        for _ in range(_MOST_TIMERS):
            await self._host.idle(self._run, scope=_ALL)
            await self._host.quiet()
            row = await self._host.run(self._run, scope=_ALL)
            waits = row.status == "ended" or row.due_at >= NEVER or await self._open()
            if waits or self._spec.board is not None:
                break
            await self._clock.advance((row.due_at - self._clock.now()) / 1000)
        return await self._host.run(self._run, scope=_ALL)

    async def _open(self) -> list[OpenRequest]:
        return await self._host.requests(scope=_ALL, run=self._run)

    async def _do(self, step: ScenarioStep, row: RunRow) -> tuple[str, ...]:
        """Do a step; return what was otherwise, if anything."""
        if step.wait is not None:
            await self._clock.advance(step.wait)
            return ()
        signal: Signal = Stop(step.stop or "now")
        if step.stop is None:
            name, asked = step.answer or step.cancel or "", await self._open()
            found = next((each for each in asked if request_name(each.tool) == name), None)
            if found is None:
                names = (request_name(each.tool) or "a message" for each in asked)
                state = f"it waits for {', '.join(names)}" if asked else _ended(row)
                return f"the run does not wait for {name or 'a message'}", state
            signal = _signal(step, found)
        kind, _, who = (step.as_ or f"user:{self._me.user}").partition(":")
        roles, groups = ((who,) if kind == each else () for each in ("role", "group"))
        try:
            await self._host.deliver(self._run, signal, scope=Scope(_APP, who, roles, groups))
        except WeftError as error:
            return () if step.refused else (f"this was refused: {error}", *_hint(error))
        return ("this was accepted, and must be refused",) if step.refused else ()


def _mistakes(script: ScriptedModel, workflow: Workflow) -> tuple[str, ...]:
    try:
        script.require_known(workflow)
    except UsageError as error:
        return (str(error), *_hint(error))
    return ()


def _signal(step: ScenarioStep, request: OpenRequest) -> Signal:
    """Return what a person does about an open request."""
    if step.say is not None:
        return UserMessage(step.say)
    if step.cancel is not None:
        return CancelRequest(request.id)
    schema = request.response_schema or {"type": "object"}
    is_made_up = step.value is None
    return Answer(request.id, sample_value(schema, Random(0)) if is_made_up else step.value)  # noqa: S311


@dataclass(frozen=True, slots=True)
class RunFacts:
    """How a run went."""

    workflow: Workflow
    row: RunRow
    events: list[Event]
    #: Who had turns: agents, or steps of a flow; turns of one in succession count once.
    route: list[str]
    #: The values at the end; of a board, the newest artifact of each type.
    variables: Mapping[str, Json]
    #: Whom each tool or approval has asked.
    requests: dict[str, str]
    #: The texts that the user of the run was shown.
    shown: list[str]
    #: What went wrong on the way, besides the reason of its end.
    errors: list[str]

    @property
    def outcome(self) -> str:
        """How it has ended, or that it waits."""
        return self.row.outcome or "waiting"


async def facts_of(host: Host, row: RunRow) -> RunFacts:
    """Return how a run went."""
    scope = Scope.operator(row.app)
    workflow = await host.workflow(row.run, scope=scope)
    found = host.events(row.run, scope=scope)
    events = [event async for event in found if isinstance(event, Event)]
    variables = (await host.state(row.run, scope=scope)).variables
    if workflow.spec.board is not None:
        published = (e.data for e in events if isinstance(e.data, kinds.ArtifactPublished))
        variables = {artifact.type: artifact.payload for artifact in published}
    opened = (event.data for event in events if isinstance(event.data, kinds.RequestOpened))
    turns = (event.data for event in events if isinstance(event.data, kinds.TurnStarted))
    errors = (event.data.error for event in events if isinstance(event.data, _ERRORS))
    audience = Audience(workflow.spec, row.user)
    seen = (user_event_data(event, row.run, workflow, audience) for event in events)
    is_flow = workflow.spec.flow is not None
    names = (
        f"{UNDO if turn.undoes else ''}{turn.step if is_flow else turn.agent}" for turn in turns
    )
    return RunFacts(
        workflow=workflow,
        row=row,
        events=events,
        route=[name for name, _ in groupby(names)],
        variables=variables,
        requests={
            request_name(asked.tool): asked.addressee or USER
            for asked in opened
            if asked.kind == "ui"
        },
        shown=[shown(part) for each in seen if each for part in _parts(each["data"])],
        errors=[error for error in dict.fromkeys(errors) if error not in row.reason],
    )


def request_name(tool: str | None) -> str:
    """Return the name of what asks a person: a tool, or an approval of a flow."""
    return (tool or "").removeprefix(APPROVAL)


def _parts(data: Mapping[str, Json]) -> list[Json]:
    return [data[key] for key in ("text", "payload") if data.get(key) is not None]


def _differences(
    expect: Expected, facts: RunFacts, ended: str
) -> Iterator[tuple[KeyPath, str, Json, Json]]:
    """Yield what is otherwise than expected: path, message, and both values."""
    wanted = expect.outcome or ("not failed" if facts.outcome in _BAD else facts.outcome)
    if facts.outcome != wanted:
        yield ("outcome",), "the outcome differs", wanted, ended
    if expect.route is not None and not goes_along(facts.route, expect.route):
        yield ("route",), "the route differs", " -> ".join(expect.route), " -> ".join(facts.route)
    if expect.requests not in (None, facts.requests):
        yield ("requests",), "the requests differ", expect.requests, facts.requests
    for name, value in expect.variables.items():
        found = facts.variables.get(name)
        if not _has_value(found, value):
            yield ("variables", name), f"{name} has another value", value, found
    said = " | ".join(facts.shown)
    for number, text in enumerate(expect.shown):
        if text.lower() not in said.lower():
            yield ("shown", number), "the user was not shown this", text, said
    for number, text in enumerate(expect.never_shown):
        if text.lower() in said.lower():
            yield ("never_shown", number), "the user was shown this", f"never {text}", said


def goes_along(route: Iterable[str], expected: Iterable[str]) -> bool:
    """Return whether a route is as expected; `...` stands for any turns.

    >>> goes_along(["A", "B", "C"], ["A", "...", "C"]), goes_along(["A", "B"], ["A"])
    (True, False)
    """
    turns = ("(.*\n)*" if turn == ANY_TURNS else f"{re.escape(turn)}\n" for turn in expected)
    return re.fullmatch("".join(turns), "".join(f"{turn}\n" for turn in route)) is not None


def _has_value(found: Json, expected: Json) -> bool:
    """Return whether a value is as expected; an object may have more keys."""
    fields, wanted = as_object(found), as_object(expected)
    if fields is None or wanted is None:
        return found == expected
    return all(name in fields and _has_value(fields[name], wanted[name]) for name in wanted)


def _ended(row: RunRow) -> str:
    """Return how a run has ended, and why."""
    return f"{row.outcome or 'waiting'}: {row.reason}" if row.reason else row.outcome or "waiting"


def _cut(value: Json) -> str:
    text = shown(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def run_generated_scenarios(
    spec: WorkflowSpec, code: Mapping[str, bytes], tests: Mapping[str, str]
) -> tuple[ScenarioRun, ...]:
    """Run the scenarios of a generated package with stand-ins: its code is not executed.

    Values that only the code sets are not compared.
    """
    subject = Subject(spec, code={path: raw.decode() for path, raw in code.items()})
    package = Package(
        folder=Path(spec.orchestrator.workflow_name),
        spec=spec,
        files={},
        code=answering_code(subject),
        tests={path: text.encode() for path, text in tests.items()},
    )
    uncertain = set_by_code(subject)
    files = [_without(file, uncertain) for file in read_scenarios(package)]

    deciding = decided_by_code(subject)

    async def run() -> list[ScenarioRun]:
        return [_rated(await run_scenario(package, file), deciding) for file in files]

    return tuple(asyncio.run(run()))


def _rated(result: ScenarioResult, deciding: Collection[str]) -> ScenarioRun:
    """Return what a scenario with stand-ins shows: nothing after a call that code decides.

    What came before the call counts, and whom the run asked, as no code decides that.
    """
    differences = tuple(map(_in_words, result.findings.values()))
    if result.course is None:
        return ScenarioRun(result.name, differences)
    expect, facts = result.course
    before, called = _decided(facts, deciding)
    wanted, route = expect.requests or {}, expect.route
    others = any(facts.requests[tool] != wanted[tool] for tool in wanted.keys() & facts.requests)
    begins = route is None or any(goes_along(before, route[:end]) for end in range(len(route) + 1))
    if called and begins and not others:
        return ScenarioRun(result.name, rests_on=tuple(sorted(called)))
    return ScenarioRun(result.name, differences)


def _decided(facts: RunFacts, deciding: Collection[str]) -> tuple[list[str], set[str]]:
    """Return the turns up to the first call that code decides, and the tools so called."""
    turns, called = list[str](), set[str]()
    for event in facts.events:
        if isinstance(event.data, kinds.TurnStarted) and not called:
            turns.append(event.data.agent)
        elif isinstance(event.data, kinds.ToolCalled) and event.data.tool in deciding:
            called.add(event.data.tool)
    return [turn for turn, _ in groupby(turns)], called


def _without(file: ScenarioFile, names: Collection[str]) -> ScenarioFile:
    """Return a scenario that does not compare these variables."""

    def case(given: ScenarioCase) -> ScenarioCase:
        kept = {key: value for key, value in given.expect.variables.items() if key not in names}
        expect = given.expect.model_copy(update={"variables": kept})
        then = case(given.then) if given.then else None
        return given.model_copy(update={"expect": expect, "then": then})

    scenario = case(file.scenario) if file.scenario else None
    return replace(file, scenario=cast("Scenario | None", scenario))


def _in_words(finding: Finding) -> str:
    return "; ".join((finding.message, *finding.cause))
