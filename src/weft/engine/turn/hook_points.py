"""Hook points: where functions of a package are called around runs, turns and messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.engine.commands import Command, Record
from weft.engine.events import ToolCalled
from weft.engine.events.kinds import HookPoint
from weft.engine.state import Activation, State
from weft.ids import FUNCTION_REF
from weft.spec.tools import Hook, LifecycleTool
from weft.spec.triggers import FunctionTrigger
from weft.spec.variables import ComputedSource, DerivedSource, Variable
from weft.spec.workflow import WorkflowSpec

#: The hooks that may change the messages to an agent.
REPLY_HOOKS: Final[tuple[HookPoint, ...]] = (
    "update_agent_state",
    "process_all_messages_before_reply",
    "process_last_received_message",
)
SEND_HOOK: Final = "process_message_before_send"


@dataclass(frozen=True, slots=True)
class HookFunction:
    """A function of the package, and the hook point it is called at."""

    hook: HookPoint
    #: Its file and its name, as linked functions are called.
    function: str
    #: Whether the turn fails with it.
    stops: bool = False
    #: The agent at whose turns it is called; None for all.
    agent: str | None = None
    #: The variable it computes or triggers.
    variable: str = ""


def function_key(folder: str, file: str, function: str) -> str:
    """Return the key of a function in its package.

    >>> function_key("hooks", "audit.py", "note")
    'hooks/audit.py:note'
    """
    return f"{file if file.startswith(f'{folder}/') else f'{folder}/{file}'}:{function}"


def declared_hooks(spec: WorkflowSpec) -> list[HookFunction]:
    """Return every declared function: lifecycle tools before hooks, each in file order."""
    return [
        *(
            _call("tools", lifecycle_tool.trigger, lifecycle_tool)
            for lifecycle_tool in spec.lifecycle_tools
        ),
        *(_call("hooks", hook.hook_type, hook) for hook in spec.hooks),
    ]


def function_triggers(variables: Mapping[str, Variable]) -> list[HookFunction]:
    """Return the functions that are called after each turn for the value of a variable."""
    found: dict[HookFunction, None] = {}
    for name, variable in variables.items():
        if isinstance(variable.source, DerivedSource):
            steps = (transition.trigger for transition in variable.source.transitions)
            for trigger in (*variable.source.triggers, *steps):
                if isinstance(trigger, FunctionTrigger):
                    found[HookFunction("trigger", trigger.function, variable=name)] = None
    return list(found)


def computed_function(name: str, source: ComputedSource) -> HookFunction | None:
    """Return the function that computes a variable; None if a condition does."""
    if not is_function(source.computation):
        return None
    return HookFunction("computed", source.computation, stops=True, variable=name)


def is_function(computation: str) -> bool:
    """Return whether a text names a function, `module:function`, and not a condition."""
    return FUNCTION_REF.match(computation) is not None


def linked_functions(hooks: Iterable[HookFunction]) -> dict[str, tuple[str, str]]:
    """Return the file and the name of every function, by its key."""
    found: dict[str, tuple[str, str]] = {}
    for hook in hooks:
        module, _, function = hook.function.rpartition(":")
        file = module if module.endswith(".py") else f"{module.replace('.', '/')}.py"
        found[hook.function] = (file, function)
    return found


def hooks_at(
    hooks: Iterable[HookFunction], agent: str | None, *points: HookPoint
) -> tuple[HookFunction, ...]:
    """Return the functions at some hook points that concern an agent, in the order of the points.

    Without an agent they are those of the run itself, whichever agent they are declared for.
    """
    known = tuple(hooks)
    return tuple(
        hook
        for point in points
        for hook in known
        if hook.hook == point and (agent is None or hook.agent in (None, agent))
    )


def hook_label(hook: HookPoint | None, variable: str) -> str:
    """Return a hook point as messages and call ids name it.

    >>> hook_label("computed", "risk")
    'computed:risk'
    """
    return f"{hook}:{variable}" if variable else str(hook)


def open_hook(state: State, active: Activation, hook: HookFunction) -> list[Command]:
    """Call a function, and let the turn wait for it."""
    id_ = f"{hook_label(hook.hook, hook.variable)}-{state.seq}"
    state.update(active.replace(missing=frozenset({id_})))
    return [record_hook(id_, hook, active.number)]


def record_hook(id_: str, hook: HookFunction, turn: int) -> Command:
    """Return the record of a call at a hook point."""
    called = ToolCalled(id_, hook.function, {}, hook=hook.hook, variable=hook.variable)
    return Record(called, turn)


def _call(folder: str, hook: HookPoint, declared: LifecycleTool | Hook) -> HookFunction:
    return HookFunction(
        hook,
        function_key(folder, declared.file, declared.function),
        stops=declared.on_error == "stop",
        agent=declared.agent,
    )
