"""Points: the boundaries of runs and turns at which functions of a package are called."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weft.engine.commands import Command, Record
from weft.engine.events import ToolCalled
from weft.engine.state import Activation, State
from weft.ids import FUNCTION_REF
from weft.spec.tools import Hook, LifecycleTool
from weft.spec.triggers import FunctionTrigger
from weft.spec.variables import ComputedSource, DerivedSource, Variable
from weft.spec.workflow import WorkflowSpec

#: What begins the point of a function whose result a variable is set to.
COMPUTED: Final = "computed:"
TRIGGER: Final = "trigger:"

#: The tool by which a model hands off itself; the engine performs it.
HANDOFF: Final = "handoff"

#: The hooks that see, and may change, what an agent is about to be sent.
REPLY_HOOKS: Final = (
    "update_agent_state",
    "process_all_messages_before_reply",
    "process_last_received_message",
)
SEND_HOOK: Final = "process_message_before_send"


@dataclass(frozen=True, slots=True)
class PointCall:
    """A function of the package and the boundary it is called at."""

    point: str
    #: What it is called among the linked functions: its file and its name.
    function: str
    #: Whether the turn fails with it.
    stops: bool = False
    #: Only at the turns of this agent; None for all.
    agent: str | None = None


def function_key(folder: str, file: str, function: str) -> str:
    """Return what a function is called among those of its package.

    >>> function_key("hooks", "audit.py", "note")
    'hooks/audit.py:note'
    """
    return f"{file if file.startswith(f'{folder}/') else f'{folder}/{file}'}:{function}"


def declared_points(spec: WorkflowSpec) -> list[PointCall]:
    """Return every call at a boundary: lifecycle tools before hooks, each in file order."""
    return [
        *(_call("tools", it.trigger, it) for it in spec.lifecycle_tools),
        *(_call("hooks", it.hook_type, it) for it in spec.hooks),
    ]


def function_triggers(variables: Mapping[str, Variable]) -> list[PointCall]:
    """Return the functions that are asked after each turn what a variable is."""
    found: dict[PointCall, None] = {}
    for name, variable in variables.items():
        if isinstance(variable.source, DerivedSource):
            steps = (it.trigger for it in variable.source.transitions)
            for trigger in (*variable.source.triggers, *steps):
                if isinstance(trigger, FunctionTrigger):
                    found[PointCall(f"{TRIGGER}{name}", trigger.function)] = None
    return list(found)


def computed_function(name: str, source: ComputedSource) -> PointCall | None:
    """Return the function a variable is computed by; None if a condition does it."""
    if not is_function(source.computation):
        return None
    return PointCall(f"{COMPUTED}{name}", source.computation, stops=True)


def is_function(computation: str) -> bool:
    """Tell a function, `module:function`, from a condition."""
    return FUNCTION_REF.match(computation) is not None


def linked_functions(calls: Iterable[PointCall]) -> dict[str, tuple[str, str]]:
    """Return file and function of every call, by what it is called."""
    found: dict[str, tuple[str, str]] = {}
    for call in calls:
        module, _, function = call.function.rpartition(":")
        file = module if module.endswith(".py") else f"{module.replace('.', '/')}.py"
        found[call.function] = (file, function)
    return found


def at_point(calls: Iterable[PointCall], agent: str | None, *points: str) -> tuple[PointCall, ...]:
    """Return the calls at some points that concern an agent, in the order of the points.

    Without an agent they are those of the run itself, whichever agent they are declared for.
    """
    return tuple(_ordered(tuple(calls), agent, points))


def _ordered(
    calls: tuple[PointCall, ...], agent: str | None, points: tuple[str, ...]
) -> Iterator[PointCall]:
    for point in points:
        at = (it for it in calls if it.point == point)
        yield from (it for it in at if agent is None or it.agent in (None, agent))


def open_point(state: State, active: Activation, call: PointCall) -> list[Command]:
    """Let a function be called, and the activation wait for it."""
    id_ = f"{call.point}-{state.seq}"
    state.update(active.replace(missing=frozenset({id_})))
    return [called(id_, call, active.number)]


def called(id_: str, call: PointCall, turn: int) -> Command:
    """Return the record of a call at a boundary."""
    return Record(ToolCalled(id_, call.function, {}, point=call.point), turn)


def _call(folder: str, point: str, declared: LifecycleTool | Hook) -> PointCall:
    return PointCall(
        point,
        function_key(folder, declared.file, declared.function),
        stops=declared.on_error == "stop",
        agent=declared.agent,
    )
