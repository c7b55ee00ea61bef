"""VAR021 and NAME001: variables that code sets and reads by name."""

from collections.abc import Iterable, Iterator

from weft.check.code.facts import code_of, reachable
from weft.check.code.functions import PLAIN_NAME
from weft.check.code.modules import Definition, PlacedRead, PlacedWrite
from weft.check.rules.code import RUN_POINTS, AnyEntry, all_entries
from weft.check.spelling import did_you_mean, short
from weft.check.subject import Hit, Subject, rule
from weft.check.values import format_value, shown_value_error
from weft.engine.variables.access import access_error
from weft.engine.variables.conditions import same
from weft.findings import Place
from weft.spec.tools import AgentTool, Hook, LifecycleTool, UiTool
from weft.spec.types import print_type
from weft.spec.variables import DerivedSource


@rule("VAR021", "variables", "models", "agents", "tools", "lifecycle_tools", "hooks", "code")
def code_may_set_it(subject: Subject) -> Iterator[Hit]:
    reported: set[tuple[Place, str]] = set()
    for entry in all_entries(subject):
        for place, name, placed in _sure_writes(subject, entry):
            fault = _fault(subject, entry, name, placed)
            if fault and (place, name) not in reported:
                reported.add((place, name))
                fact, hint = fault
                what = f"{entry.declared.function} sets {name}"
                yield Hit(
                    (*entry.path, "function"), f"{what}, but {fact}", hint=(hint,), place=place
                )


@rule("NAME001", "variables", "tools", "lifecycle_tools", "hooks", "code", affects_routes=False)
def read_is_declared(subject: Subject) -> Iterator[Hit]:
    reported: set[tuple[Place, str]] = set()
    for entry in all_entries(subject):
        for definition, injected in _definitions(subject, entry):
            for read in definition.reads:
                if read.through not in injected or read.variable in subject.variable_names:
                    continue
                place = _place(subject, definition, read)
                if (place, read.variable) not in reported:
                    reported.add((place, read.variable))
                    yield Hit(
                        (*entry.path, "function"),
                        f'{entry.declared.function} reads unknown variable "{read.variable}"',
                        hint=did_you_mean(read.variable, subject.variable_names)
                        or ("declare the variable in context_variables.json",),
                        place=place,
                    )


def _definitions(subject: Subject, entry: AnyEntry) -> Iterator[tuple[Definition, frozenset[str]]]:
    """Yield the code that runs for an entry, with the names that certainly hold the context."""
    parameters = entry.function.parameters if entry.function else ()
    injected = frozenset(one.name for one in parameters if one.injected)
    found = reachable(subject, entry.file or "", entry.declared.function)
    for index, definition in enumerate(found):
        # The declared function comes first; in others only this name is certain.
        yield definition, frozenset({PLAIN_NAME}) if index else injected


def _place(subject: Subject, definition: Definition, placed: PlacedWrite | PlacedRead) -> Place:
    return code_of(subject).modules[definition.file].place(placed.spot)


def _sure_writes(subject: Subject, entry: AnyEntry) -> Iterator[tuple[Place, str, PlacedWrite]]:
    """Yield the writes that certainly set a variable; other objects also have a method `set`."""
    for definition, injected in _definitions(subject, entry):
        for placed in definition.written:
            if placed.through in injected and placed.write.variable is not None:
                yield _place(subject, definition, placed), placed.write.variable, placed


def _fault(
    subject: Subject, entry: AnyEntry, name: str, placed: PlacedWrite
) -> tuple[str, str] | None:
    """Return why a run refuses the write, and what to do."""
    variables, declared = subject.spec.variables, entry.declared
    # The tools of an agent may set what the agent may set. An unknown writer (NAME001) may be a
    # misspelling of this one.
    writers = [declared.function, *_agents(subject, declared)]
    named = (variables[name].writers if name in variables else None) or ()
    known = subject.once(_who_may_write)
    fact = access_error(variables, name, [*writers, *(one for one in named if one not in known)])
    if fact:
        return fact, _way_out(subject, name, declared.function)
    variable, value = variables[name], placed.write.value
    if not placed.write.constant:
        return None
    if not isinstance(value, str | int | float | None):
        return f"{type(value).__name__} is not a JSON value", "set a text, number, list or object"
    # None removes the value of any variable.
    wrong = None if value is None else shown_value_error(name, variable, value, subject.models)
    if wrong:
        return wrong, f"set a value that fits {short(print_type(variable.type))}"
    source = variable.source
    if isinstance(source, DerivedSource) and source.transitions:
        states = [source.default, *(step.to for step in source.transitions)]
        if not any(same(state, value) for state in states):
            return (
                f"no transition leads to {format_value(name, value)}",
                "add the transition, or set another state",
            )
    return None


def _agents(subject: Subject, declared: AgentTool | UiTool | LifecycleTool | Hook) -> Iterable[str]:
    """Yield the agents whose write permissions the code has; all agents for shared hooks."""
    point = getattr(declared, "hook_type", getattr(declared, "trigger", None))
    if point in RUN_POINTS:
        return ()
    return subject.agents if declared.agent is None else (declared.agent,)


def _who_may_write(subject: Subject) -> set[str]:
    return {*subject.agents, *(entry.declared.function for entry in all_entries(subject))}


def _way_out(subject: Subject, name: str, function: str) -> str:
    if name not in subject.variable_names:
        close = did_you_mean(name, subject.variable_names)
        return close[0] if close else "declare the variable, with a derived or entity source"
    variable = subject.spec.variables.get(name)
    if variable and variable.source.type in ("derived", "entity"):
        return f'add "{function}" to the writers of {name}'
    return "set another variable, whose source is derived or entity"
