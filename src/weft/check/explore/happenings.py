"""What may happen in a run and set a variable, and at which moments."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.check.code.facts import code_of, path_in, reachable
from weft.check.code.functions import Write
from weft.check.declarations import automatic_tools, bound_model
from weft.check.subject import Subject
from weft.engine.compile import refreshed
from weft.engine.compiled import AFTER_RUN
from weft.engine.variables.access import access_error
from weft.engine.variables.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.tools import BUILT_IN_FILE, Hook, LifecycleTool
from weft.spec.variables import DerivedSource, EntitySource, Source, Variable, is_call

#: `start`, `begin`, `close`, `pass` and `auto`: everything happens, in the order of the stages (a
#: run starts, a turn begins or ends, an agent hands off, an automatic tool is called). `say` and
#: `hear`: exactly one thing happens (the agent's or the user's message). The others may happen any
#: number of times: tool calls in a `turn`, other code during it (`aside`), or at `any` time.
#: `fail`: the turn fails, and the run with it, unless it is the turn of a member of a group.
Moment: TypeAlias = Literal[
    "start", "begin", "close", "pass", "auto", "say", "hear", "turn", "aside", "any", "fail"
]

#: The stages of a tool call, then that of counters at the end of a turn.
CALLED, ANSWERED, RUNS, RETURNED, COUNTED = range(5)
#: The rank of writes by code: after all triggers.
LAST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class When:
    """A moment of a run; None means any agent, or any target of a handoff."""

    moment: Moment
    agent: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable is set. UNKNOWN as value means any value; as origin, any old value.

    `keeps` means that the variable may also stay unchanged. `rank` is the place of a trigger
    among those of its variable: of all that fire at once, the last one counts. Settings with one
    rank exclude each other.
    """

    variable: str
    value: Json
    origin: Json = UNKNOWN
    keeps: bool = False
    rank: int = LAST


@dataclass(frozen=True, slots=True)
class Happening:
    """A group of settings that happen together.

    `why` is the reason why they may not happen; it is empty for declared triggers. `stage`
    orders what one call of a function does, and `call` names the function.
    """

    when: When
    settings: tuple[Setting, ...] = ()
    why: str = ""
    stage: int = 0
    call: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """A function of the package, its code file, and when it is called."""

    function: str
    folder: str
    file: str
    agent: str | None
    when: When


#: When functions at hook points are called; after a run there are no more decisions.
_BOUNDARIES: Final[dict[str, Moment | None]] = {
    "on_start": "start",
    "before_chat": "start",
    "before_agent": "begin",
    "after_agent": "close",
    **dict.fromkeys(AFTER_RUN),
}


def callers(subject: Subject) -> Iterator[Caller]:
    automatic = set(automatic_calls(subject))
    for tool in subject.spec.tools:
        by_itself = (tool.agent, tool.function) in automatic
        when = When("auto" if by_itself else "turn", tool.agent)
        yield Caller(tool.function, "tools", tool.file, tool.agent, when)
    for lifecycle_tool in subject.spec.lifecycle_tools:
        yield from _at_boundary("tools", lifecycle_tool, _BOUNDARIES[lifecycle_tool.trigger])
    for hook in subject.spec.hooks:
        yield from _at_boundary("hooks", hook, _BOUNDARIES.get(hook.hook_type, "aside"))


def _at_boundary(
    folder: str, declared: LifecycleTool | Hook, moment: Moment | None
) -> Iterator[Caller]:
    # A function called at the start of a run belongs to no agent, even if it names one.
    agent = None if moment == "start" else declared.agent
    if moment is not None:
        yield Caller(declared.function, folder, declared.file, agent, When(moment, agent))


def automatic_calls(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the agents whose replies all call a tool, with that tool."""
    for name, agent in subject.agents.items():
        tools = automatic_tools(subject, name)
        if agent.auto_tool_mode and tools and bound_model(subject, name):
            yield name, tools[0][1].function


#: The method of the context that reads sources again.
_REFRESH: Final = "refresh"
_SCALARS: Final = (str, int, float, bool, type(None))


def code_writes(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    writable = [
        name
        for name, variable in variables.items()
        if isinstance(variable.source, DerivedSource | EntitySource)
    ]
    shown: set[tuple[str | None, str]] = set()
    for caller in callers(subject):
        settings = tuple(_settings(subject, caller, writable))
        if settings:
            shown |= {(caller.agent, setting.variable) for setting in settings}
            why = f"the code of {caller.function} may set {settings[0].variable}, or leave it"
            yield Happening(caller.when, settings, why, stage=RUNS, call=caller.function)
    for name, variable in variables.items():
        for writer in variable.writers or ():
            if writer in subject.agents and (writer, name) not in shown:
                why = f"{writer} may set {name}, or leave it"
                yield Happening(When("turn", writer), (_any(name),), why)
        if _is_read_again(subject, variable.source):
            yield Happening(When("any"), (_any(name),), f"{name} may change outside the run")


def _is_read_again(subject: Subject, source: Source) -> bool:
    """Return whether a variable may get another value because its source is read again."""
    if isinstance(source, DerivedSource):
        return source.persist
    strategy = refreshed(source)
    if strategy == "once" or is_call(source):
        return subject.once(_refreshes)
    return strategy is not None


def _refreshes(subject: Subject) -> bool:
    """Return whether code refreshes variables."""
    definitions = (
        definition
        for one in code_of(subject).modules.values()
        for definition in one.definitions.values()
    )
    return any(_REFRESH in definition.mentions for definition in definitions)


def _settings(subject: Subject, caller: Caller, writable: Sequence[str]) -> Iterator[Setting]:
    """Yield the settings of a call: those in its code, or all permitted ones if it has none."""
    if caller.folder == "tools" and caller.file == BUILT_IN_FILE:
        return
    path = path_in(caller.folder, caller.file, subject.code) or ""
    used = reachable(subject, path, caller.function)
    writes = {write: None for one in used for write in one.writes} if used else {Write(None): None}
    worked_out = any(write.variable is None for write in writes)
    writers = (caller.function, *([caller.agent] if caller.agent else []))
    for name in writable:
        if access_error(subject.spec.variables, name, writers) is None:
            values = [_value(write) for write in writes if write.variable == name]
            declared = caller.function in (subject.spec.variables[name].writers or ())
            if worked_out or (declared and not values):
                values.append(UNKNOWN)
            yield from (Setting(name, value, keeps=True) for value in values)


def _value(write: Write) -> Json:
    """Return the value that is set, or UNKNOWN if it is computed."""
    return write.value if write.constant and isinstance(write.value, _SCALARS) else UNKNOWN


def _any(name: str) -> Setting:
    return Setting(name, UNKNOWN, keeps=True)
