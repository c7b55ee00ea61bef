"""The ways in which steps are done: those of a board, woken by artifacts, and those of a flow.

A conversation has no steps: its turns are those of `activations` itself.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from weft.engine.board import turn as board_turn
from weft.engine.commands import Command, Fetch, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import Event, ModelReplied, ToolFailed, TurnFailed, TurnStarted
from weft.engine.flow import turn as flow_turn
from weft.engine.state import Activation, State
from weft.findings import Json

#: The boundaries of steps at which code is called, and where what was fetched for them stands.
POINTS: Final = board_turn.POINTS | flow_turn.POINTS
FETCHED: Final = frozenset({board_turn.BOARD, flow_turn.FLOW})


class Steps(Protocol):
    """What a way does in the course of a step; a module has it."""

    def start(
        self, compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted, /
    ) -> list[Command]: ...

    def fetch_of(self, compiled: CompiledWorkflow, active: Activation, /) -> Fetch: ...

    def fetched(
        self, compiled: CompiledWorkflow, state: State, event: Event, found: Mapping[str, Json], /
    ) -> list[Command]: ...

    def role(self, compiled: CompiledWorkflow, active: Activation, /) -> str: ...

    def reopened(
        self, compiled: CompiledWorkflow, active: Activation, waiting: Sequence[str], /
    ) -> list[Command]: ...

    def read_reply(
        self, compiled: CompiledWorkflow, active: Activation, data: ModelReplied, /
    ) -> tuple[Json, str | None]: ...

    def replied(
        self,
        compiled: CompiledWorkflow,
        state: State,
        event: Event,
        active: Activation,
        data: ModelReplied,
        output: Json,
        /,
    ) -> list[Command]: ...

    def returned(
        self,
        compiled: CompiledWorkflow,
        state: State,
        active: Activation,
        point: str,
        value: Json,
        event: Event,
        /,
    ) -> list[Command]: ...

    def call_failed(
        self,
        compiled: CompiledWorkflow,
        state: State,
        active: Activation,
        point: str,
        data: ToolFailed,
        /,
    ) -> list[Command]: ...

    def ended(
        self, compiled: CompiledWorkflow, state: State, active: Activation, /
    ) -> list[Command]: ...

    def failed(
        self,
        compiled: CompiledWorkflow,
        state: State,
        event: Event,
        active: Activation,
        data: TurnFailed,
        /,
    ) -> list[Command]: ...


def steps_of(compiled: CompiledWorkflow) -> Steps:
    """Return the way whose steps a workflow has."""
    return board_turn if compiled.flow is None else flow_turn


def role_of(compiled: CompiledWorkflow, active: Activation) -> str:
    """Return as what an agent asks its model: at a step it may be shown something else."""
    return steps_of(compiled).role(compiled, active) if active.step else active.agent


def unprepared(state: State, active: Activation, found: Mapping[str, Json], told: str) -> Command:
    """Return the end of a turn for which something could not be fetched."""
    if active.flow is not None:
        return flow_turn.unprepared(state, active, found, told)
    return Record(TurnFailed(active.agent, told, "source"))
