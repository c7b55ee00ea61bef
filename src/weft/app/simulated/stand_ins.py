"""Stand-ins for the code of a package, made from its declarations. Nothing of the package runs.

A UI tool asks with made-up contents. Another tool returns the keys and sets the variables that
routing depends on. Functions that compute variables return a value of the type, and hooks do
nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Final, cast

from weft.adapters.models.sample_values import put_at, sample_value
from weft.app.simulated.coverage import Coverage
from weft.check.code.facts import path_in, reachable
from weft.check.subject import Subject
from weft.engine.compile import compile_workflow
from weft.errors import ToolError
from weft.findings import Json
from weft.generator.code_check.files import Function
from weft.generator.judge.stubs import function_texts, stub_file
from weft.ports.model import ToolSchema
from weft.ports.tools import Call, ToolLoader
from weft.runtime.workflow import Workflow, link
from weft.spec.agents import Handoff
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import names as names_in
from weft.spec.tools import AgentTool, LifecycleTool, UiTool, is_built_in
from weft.spec.triggers import FunctionTrigger, ToolResponseTrigger
from weft.spec.type_meaning import json_schema, validation_error
from weft.spec.types import OptionalOf
from weft.spec.variables import ComputedSource, DerivedSource, EntitySource, ExternalSource, is_call
from weft.spec.workflow import WorkflowSpec

#: The probability of a value that some rule compares, and that code sets a variable.
_ASKED: Final = 0.8
_SETS: Final = 0.8

#: The sources whose values depend on what code does.
_STORED: Final = (EntitySource, ExternalSource)

#: The share of runs in which tools mostly return what variables begin with.
_QUIET: Final = 0.5

#: What code raises to refuse a call.
_REFUSALS: Final = frozenset({"RetryModel", "Refuse"})


def link_stand_ins(subject: Subject, coverage: Coverage, loader: ToolLoader) -> Workflow:
    """Link a workflow whose tools are stand-ins; raises LinkError for code that is missing."""
    code = {
        path: stub_file(subject.spec, path, text, _empty_body).encode()
        for path, text in subject.code.items()
        if path.endswith(".py")
    }
    workflow = link(subject.spec, code, loader)
    return replace(workflow, tools=StandIns(workflow, subject, coverage))


def _empty_body(_name: str, _declared: Function | None, _parameters: list[str]) -> str:
    return "return None"


def answering_code(subject: Subject) -> dict[str, bytes]:
    """Return code for scenarios: UI tools ask, and other tools return the keys that are read."""
    keys, models = dict(_keys(subject.spec)), compile_workflow(subject.spec).models

    def body(name: str, declared: Function | None, parameters: list[str]) -> str:
        if isinstance(declared, UiTool):
            sample = sample_value(declared.payload_schema or {"type": "object"}, Random(0))  # noqa: S311
            shown = ", ".join(f'"{parameter}": {parameter}' for parameter in parameters)
            return f'return await use_ui_tool("{name}", {{**{sample!r}, {shown}}})'
        if not isinstance(declared, AgentTool):
            return "return None"
        made: dict[str, Json] = {}
        for path, variable in keys.get(name, ()):
            type_ = subject.spec.variables[variable].type
            inner = type_.of if isinstance(type_, OptionalOf) else type_
            put_at(made, ((path, sample_value(json_schema(inner, models), Random(0))),))  # noqa: S311
        calls = [f"await context_variables.refresh({call!r})" for call in refreshed.get(name, ())]
        return "\n    ".join([*calls, f"return {made!r}"])

    refreshed = dict(_refreshed(subject))
    return {
        path: stub_file(subject.spec, path, text, body).encode()
        for path, text in subject.code.items()
        if path.endswith(".py")
    }


class StandIns:
    """The tools of a package that are not called."""

    def __init__(self, workflow: Workflow, subject: Subject, coverage: Coverage) -> None:
        # The stub code is unloaded with the workflow.
        self._workflow, self._coverage = workflow, coverage
        self._tools = subject.tools
        self._sets = dict(_sets(subject))
        self._keys = dict(_keys(subject.spec))
        self._computed = dict(_computed(subject.spec))
        self._calls: Counter[tuple[str, str]] = Counter()

    def schema(self, tool: str) -> ToolSchema:
        """Return how a model sees a tool."""
        return self._workflow.tools.schema(tool)

    def validation_error(self, tool: str, arguments: Mapping[str, Json]) -> str | None:
        """Return why a tool cannot be called with arguments."""
        return self._workflow.tools.validation_error(tool, arguments)

    async def call(self, call: Call) -> object:
        """Validate the arguments, and do what routing depends on."""
        result = await self._workflow.tools.call(call)
        tool = self._tools.get(call.name)
        if call.function is not None or (tool is not None and is_built_in(tool)):
            return result
        self._calls[call.app, call.name] += 1
        random = Random(f"{call.app}:{call.name}:{self._calls[call.app, call.name]}")  # noqa: S311
        if call.name in self._computed:
            return self._value(self._computed[call.name], call.app, random)
        for name in self._sets.get(call.name.rpartition(":")[2], ()):
            if random.random() < _SETS:
                with suppress(ToolError):  # A transition that does not apply now.
                    call.variables.set(name, self._value(name, call.app, random))
        if tool is None:
            return None
        if isinstance(tool, UiTool):
            schema = tool.payload_schema or {"type": "object"}
            shown = {
                **cast("dict[str, Json]", sample_value(schema, random)),
                **cast("dict[str, Json]", call.arguments),
            }
            return await call.ask(tool.function, shown, None, None)
        made: dict[str, Json] = {"result": f"[sample] {tool.function}"}
        for path, name in self._keys.get(tool.function, ()):
            put_at(made, ((path, self._value(name, call.app, random)),))
        return made

    def _value(self, name: str, app: str, random: Random) -> Json:
        """Make up a value of a variable: one that rules distinguish, or in quiet runs the first."""
        compiled = self._coverage.compiled
        first = compiled.start_values.get(name)
        is_quiet = Random(app).random() < _QUIET and not self._coverage.is_late(app)  # noqa: S311
        if first is not None and is_quiet and random.random() < _ASKED:
            return first
        type_ = compiled.variables[name].type
        asked = [
            value
            for value in self._coverage.values_of(name)
            if value is not None and not validation_error(type_, value, compiled.models)
        ]
        # What code decides, no steering knows.
        self._coverage.courses[app].guessed |= len(asked) > 1
        if asked and random.random() < _ASKED:
            return random.choice(asked)
        inner = type_.of if isinstance(type_, OptionalOf) else type_
        return sample_value(json_schema(inner, compiled.models), random)


def _refreshed(subject: Subject) -> Iterator[tuple[str, list[str]]]:
    """Yield the services that the code of each tool calls."""
    calls = [name for name, source in subject.sources(ExternalSource) if is_call(source)]
    for tool in subject.spec.tools:
        path = path_in("tools", tool.file, subject.code) or ""
        body = dict(function_texts(subject.code.get(path, ""))).get(tool.function, "")
        yield tool.function, [name for name in calls if f'refresh("{name}")' in body]


def set_by_code(subject: Subject) -> set[str]:
    """Return the variables that the code of tools sets, and those that functions compute."""
    set_ = {name for _, names in _sets(subject) for name in names}
    stored = {name for kind in _STORED for name, _ in subject.sources(kind)}
    return set_ | stored | {name for _, name in _computed(subject.spec)}


def decided_by_code(subject: Subject) -> set[str]:
    """Return the tools whose code may refuse a call or decide who is next."""
    spec, sets, keys = subject.spec, dict(_sets(subject)), dict(_keys(subject.spec))
    tested = {name for rule in spec.handoffs for name in _tested(rule)}
    found: set[str] = set()
    for tool in spec.tools:
        path = path_in("tools", tool.file, subject.code) or ""
        mentions = {
            name for each in reachable(subject, path, tool.function) for name in each.mentions
        }
        returns = isinstance(tool, AgentTool) and tool.function in keys
        if returns or mentions & _REFUSALS or tested.intersection(sets.get(tool.function, ())):
            found.add(tool.function)
    return found


def _tested(rule: Handoff) -> tuple[str, ...]:
    if rule.condition is None or rule.condition_type != "expression":
        return ()
    return names_in(parse_condition(rule.condition))


def _sets(subject: Subject) -> Iterator[tuple[str, list[str]]]:
    """Yield the derived variables that the code of each tool sets."""
    derived = {name for name, _ in subject.sources(DerivedSource)}
    entries: tuple[LifecycleTool, ...] = subject.spec.lifecycle_tools
    for entry in (*subject.spec.tools, *entries):
        path = path_in("tools", entry.file, subject.code) or ""
        found = reachable(subject, path, entry.function)
        names = [write.variable for definition in found for write in definition.writes]
        yield entry.function, [name for name in dict.fromkeys(names) if name in derived]


def _keys(spec: WorkflowSpec) -> Iterator[tuple[str, list[tuple[tuple[str, ...], str]]]]:
    """Yield the keys of each tool's result that variables are set from."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name, trigger in _triggers(spec):
        if isinstance(trigger, ToolResponseTrigger) and trigger.response_key:
            path = tuple(trigger.response_key.split("."))
            found.setdefault(trigger.tool, []).append((path, name))
    yield from found.items()


def _computed(spec: WorkflowSpec) -> Iterator[tuple[str, str]]:
    """Yield the functions that compute a variable, with the variable."""
    for name, variable in spec.variables.items():
        if isinstance(variable.source, ComputedSource):
            yield variable.source.computation, name
    for name, trigger in _triggers(spec):
        if isinstance(trigger, FunctionTrigger):
            yield trigger.function, name


def _triggers(spec: WorkflowSpec) -> Iterator[tuple[str, object]]:
    for name, variable in spec.variables.items():
        if isinstance(variable.source, DerivedSource):
            yield from ((name, trigger) for trigger in variable.source.triggers)
            yield from ((name, step.trigger) for step in variable.source.transitions)
