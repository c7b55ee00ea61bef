"""Flows in Python: typed steps over a shared state.

flow = Workflow.create("Review", Draft).start_with(write).then(check).finally_(publish)
result = weft.run(flow, Draft(topic="Bees"), model="sample")
"""

from weft.app.flows import FlowResult, open_flow, run_flow
from weft.context.agent_step import (
    AgentStep,
    Changes,
    ContextAssembler,
    Failure,
    PathResult,
    Response,
    StepContext,
    StepResult,
    Undone,
)
from weft.context.step_context import (
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
from weft.dsl.flow_step import (
    ApprovalBuilder,
    ForkPath,
    LoopBody,
    LowConfidencePath,
    Path,
    StepOptions,
)
from weft.dsl.flow_work import ContextBuilder, RetrievalBuilder, agent
from weft.dsl.selectors import is_in, not_
from weft.dsl.state_type import Append, Merge
from weft.flow.workflow import Workflow

__all__ = [
    "AgentStep",
    "Append",
    "ApprovalBuilder",
    "ArtifactsContextSegment",
    "AssembledContext",
    "AssembledContextBuilder",
    "Changes",
    "ContextAssembler",
    "ContextBuilder",
    "ContextFormatOptions",
    "ContextSegment",
    "Failure",
    "FlowResult",
    "ForkPath",
    "LiteralContextSegment",
    "LoopBody",
    "LowConfidencePath",
    "Merge",
    "Path",
    "PathResult",
    "Response",
    "RetrievalBuilder",
    "RetrievalContextSegment",
    "StateContextSegment",
    "StepContext",
    "StepOptions",
    "StepResult",
    "Undone",
    "VariableContextSegment",
    "Workflow",
    "agent",
    "is_in",
    "not_",
    "open_flow",
    "run_flow",
    "state_value",
]
