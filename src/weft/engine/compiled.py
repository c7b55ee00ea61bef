"""What the engine knows of a workflow, computed once for all its runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from weft.engine.board.rules import BoardRules
from weft.engine.commands import Command, Fetch
from weft.engine.conversation.routing import GroupRules, Routing
from weft.engine.events import (
    ContextFetched,
    Event,
    EventData,
    ModelReplied,
    RunStarted,
    ToolFailed,
    ToolReturned,
    TurnFailed,
)
from weft.engine.events.kinds import HookPoint
from weft.engine.flow.plan import FlowPlan
from weft.engine.state import Activation, OpenCall, State
from weft.engine.timers import Timer
from weft.engine.turn.hook_points import HookFunction
from weft.engine.variables.computed import ComputedRules
from weft.engine.variables.trigger_index import TriggerIndex
from weft.findings import Json
from weft.spec.orchestrator import Orchestrator, StartupMode
from weft.spec.tools import AgentTool, UiTool
from weft.spec.types import TypeExpr
from weft.spec.variables import EntitySource, Variable

#: The hook points of the run itself.
BEFORE_RUN: Final[tuple[HookPoint, ...]] = ("on_start", "before_chat")
AFTER_RUN: Final[tuple[HookPoint, ...]] = ("after_chat", "on_complete", "on_fail")

Values: TypeAlias = Mapping[str, Json]

#: Applies an event to a state, which it may change, and returns the commands that follow.
Handler: TypeAlias = Callable[["CompiledWorkflow", State, Event, Any], list[Command]]

#: Tells whether a state expects an event of a turn; what comes late or twice is not expected.
Expected: TypeAlias = Callable[[State, int, Any], bool]


class TurnMode(Protocol):
    """What differs between a conversation, a board and a flow. Each is a module with these names.

    Turn 0 is the run itself; it is the same in all modes and never given to these functions.
    """

    @property
    def HANDLERS(self) -> Mapping[type[EventData], Handler]:  # noqa: N802
        """The handlers of the events that only this mode has, or handles in its own way."""
        ...

    @property
    def EXPECTED(self) -> Mapping[type[EventData], Expected]:  # noqa: N802
        """When a state expects these events; others are ignored."""
        ...

    def start_run(
        self,
        compiled: "CompiledWorkflow",
        state: State,
        event: Event,
        data: RunStarted,
        values: Values,
        /,
    ) -> list[Command]:
        """Return the first commands of a run: its preparation, or its first turn."""
        ...

    def start_turns(
        self, compiled: "CompiledWorkflow", state: State, values: Values, agent: str, /
    ) -> list[Command]:
        """Start the first turns of a run that is prepared; `agent` is the one a user spoke to."""
        ...

    def role_of(self, compiled: "CompiledWorkflow", active: Activation, /) -> str:
        """Return the role under which an agent asks its model."""
        ...

    def fetch_of(self, compiled: "CompiledWorkflow", active: Activation, /) -> Fetch:
        """Return what a turn needs from outside."""
        ...

    def on_fetched(
        self,
        compiled: "CompiledWorkflow",
        state: State,
        event: Event,
        active: Activation,
        data: ContextFetched,
        /,
    ) -> list[Command]:
        """Continue a turn with what was fetched for it."""
        ...

    def on_fetch_failed(
        self, state: State, active: Activation, data: ContextFetched, error: str, /
    ) -> list[Command]:
        """Fail a turn for which something could not be fetched."""
        ...

    def read_reply(
        self, compiled: "CompiledWorkflow", active: Activation, data: ModelReplied, /
    ) -> tuple[Json, str | None]:
        """Parse a reply without tool calls; return its value, or the validation error."""
        ...

    def on_reply(
        self,
        compiled: "CompiledWorkflow",
        state: State,
        event: Event,
        active: Activation,
        data: ModelReplied,
        output: Json,
        /,
    ) -> list[Command]:
        """Continue a turn with the final reply of its model."""
        ...

    def ask_again(
        self, compiled: "CompiledWorkflow", state: State, active: Activation, values: Values, /
    ) -> list[Command]:
        """Ask the model of a turn again, after its tools have returned or its reply was refused."""
        ...

    def on_hook_returned(
        self,
        compiled: "CompiledWorkflow",
        state: State,
        event: Event,
        call: OpenCall,
        data: ToolReturned,
        /,
    ) -> list[Command]:
        """Continue a turn with the result of code that was called at a hook point."""
        ...

    def on_hook_failed(
        self,
        compiled: "CompiledWorkflow",
        state: State,
        event: Event,
        call: OpenCall,
        data: ToolFailed,
        /,
    ) -> list[Command]:
        """Continue or fail a turn whose code at a hook point has failed."""
        ...

    def on_turn_failed(
        self,
        compiled: "CompiledWorkflow",
        state: State,
        event: Event,
        active: Activation,
        data: TurnFailed,
        /,
    ) -> list[Command]:
        """Continue without a turn, try it again, or end the run."""
        ...

    def on_timer(
        self, compiled: "CompiledWorkflow", state: State, event: Event, timer: Timer, /
    ) -> list[Command]:
        """Do what a timer of the mode itself was set for."""
        ...

    def stop(self, compiled: "CompiledWorkflow", state: State, user: str, /) -> list[Command]:
        """Stop a run now."""
        ...

    def resume(self, compiled: "CompiledWorkflow", state: State, /) -> list[Command]:
        """Return the turns that are due and not started, after a restart."""
        ...

    def resume_turn(
        self, compiled: "CompiledWorkflow", state: State, active: Activation, /
    ) -> list[Command]:
        """Return what a turn records next if the journal ends before that."""
        ...


@dataclass(frozen=True, slots=True)
class ActivationRules:
    """How an agent works: with a model, or with the function that merges the replies of a group."""

    limit: int
    tools: Mapping[str, AgentTool | UiTool]
    #: The model its replies must fit, and the tool that is called with the fields of a reply.
    output: TypeExpr | None = None
    auto_tool: str | None = None
    #: What the user of the run reads when a UI tool has returned, by tool.
    tells: Mapping[str, str] = field(default_factory=dict[str, str])
    #: What the user of the run reads when somebody is asked, by tool.
    tells_asked: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The function that works in place of a model.
    function: str | None = None
    #: The targets the model may hand off to itself, by the tool that does it.
    targets: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The functions called before its turn, before each reply, with its reply, and after its turn.
    before: tuple[HookFunction, ...] = ()
    reply: tuple[HookFunction, ...] = ()
    send: tuple[HookFunction, ...] = ()
    after: tuple[HookFunction, ...] = ()
    #: The tool servers it may use.
    servers: tuple[str, ...] = ()
    #: The variables that are read again for each of its turns.
    on_demand: tuple[str, ...] = ()
    #: Whether none of these steps is needed before a reply.
    plain: bool = True


@dataclass(frozen=True, slots=True)
class CompiledWorkflow:
    """A workflow, sorted for quick look-up."""

    mode: TurnMode
    #: The handler of each event, and when that is expected; None for always.
    handlers: Mapping[type[EventData], tuple[Handler, Expected | None]]
    #: Tells whether a run may wait although no person is asked; None if it never does.
    is_paused: Callable[[State], bool] | None
    orchestrator: Orchestrator
    startup: StartupMode
    agents: Mapping[str, ActivationRules]
    routing: Routing
    groups: Mapping[str, GroupRules]
    variables: Mapping[str, Variable]
    models: Mapping[str, Mapping[str, TypeExpr]]
    triggers: TriggerIndex
    start_values: Mapping[str, Json]
    #: Why a run ends, by the index of the handoff that ends it.
    reasons: Mapping[int, str]
    #: All functions that are called at hook points.
    hooks: tuple[HookFunction, ...] = ()
    computed: ComputedRules = field(default_factory=ComputedRules)
    #: The variables that are read from outside at the start, and whenever the agent changes.
    once: tuple[str, ...] = ()
    per_phase: tuple[str, ...] = ()
    #: The tool servers that are asked for their tools at the start.
    servers: tuple[str, ...] = ()
    #: The entity variables.
    entities: Mapping[str, EntitySource] = field(default_factory=dict[str, EntitySource])
    #: The variables that later runs of a user begin with.
    carried_values: tuple[str, ...] = ()
    #: Whether a run has work before its first turn, and before its end.
    prepares: bool = False
    finishes: bool = False
    #: The rules of a board, and the plan of a flow; None for a conversation.
    board: BoardRules | None = None
    flow: FlowPlan | None = None
