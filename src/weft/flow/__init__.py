"""Flows in Python: typed steps over a shared state.

flow = Workflow.create("Review", Draft).start_with(write).then(check).finally_(publish)
spec = flow.build()
"""

from weft.dsl.flow_context import ContextBuilder, RetrievalBuilder
from weft.dsl.flow_step import (
    ApprovalBuilder,
    ForkPath,
    LoopBody,
    LowConfidencePath,
    Path,
    StepOptions,
)
from weft.dsl.flow_work import agent
from weft.dsl.selectors import is_in, not_
from weft.dsl.state_type import Append, Merge
from weft.flow.workflow import Workflow
from weft.spec.flow import ContextFormat as ContextFormatOptions

__all__ = [
    "Append",
    "ApprovalBuilder",
    "ContextBuilder",
    "ContextFormatOptions",
    "ForkPath",
    "LoopBody",
    "LowConfidencePath",
    "Merge",
    "Path",
    "RetrievalBuilder",
    "StepOptions",
    "Workflow",
    "agent",
    "is_in",
    "not_",
]
