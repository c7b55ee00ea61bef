"""Flows in Python: typed steps over a state, agents and functions, and what they are shown."""

from weft.app.flows import FlowResult, open_flow, run_flow
from weft.context.agent_step import (
    AgentStep,
    ContextAssembler,
    Failure,
    PathResult,
    Response,
    StepContext,
    StepResult,
    Undone,
)
from weft.context.assembled import (
    ArtifactsContextSegment,
    AssembledContext,
    AssembledContextBuilder,
    ContextFormatOptions,
    ContextSegment,
    LiteralContextSegment,
    RetrievalContextSegment,
    StateContextSegment,
    VariableContextSegment,
    state_value,
)

__all__ = [
    "AgentStep",
    "ArtifactsContextSegment",
    "AssembledContext",
    "AssembledContextBuilder",
    "ContextAssembler",
    "ContextFormatOptions",
    "ContextSegment",
    "Failure",
    "FlowResult",
    "LiteralContextSegment",
    "PathResult",
    "Response",
    "RetrievalContextSegment",
    "StateContextSegment",
    "StepContext",
    "StepResult",
    "Undone",
    "VariableContextSegment",
    "open_flow",
    "run_flow",
    "state_value",
]
