"""Boards in Python: typed artifacts, agents that they wake, and providers of context.

board = Board(model="sample")
board.agent("scout").consumes(Lead).publishes(Pitch).with_engines(ModelEngine())
await board.publish(Lead(name="Ada"))
await board.run_until_idle()
"""

from weft.board.application import Application, ApplicationResult, Missed
from weft.board.board import Board, Trace
from weft.context.slices import (
    AgentInfo,
    BoardReader,
    ContextProvider,
    ContextRequest,
    ContextSlice,
    Envelope,
)
from weft.dsl.board import AgentBuilder
from weft.dsl.parts import BatchSpec, FunctionEngine, JoinSpec, ModelEngine, artifact
from weft.inspect.spans import Span
from weft.runtime.board.evaluation import (
    BLOCK,
    CONTINUE,
    DEFER,
    SKIP,
    Component,
    Engine,
    EvalContext,
    EvalInputs,
    EvalResult,
    Output,
    Verdict,
)
from weft.runtime.board.publish import Publication
from weft.spec.board import (
    AfterVisibility,
    LabelledVisibility,
    PrivateVisibility,
    PublicVisibility,
    TenantVisibility,
    Visibility,
)
from weft.spec.providers import (
    CompositeProvider,
    DefaultCorrelationProvider,
    EmptyProvider,
    FilterConfig,
    FilteredContextProvider,
    RecentProvider,
    RedactingProvider,
    SemanticContextProvider,
    StateDelegatingProvider,
    SummarisingProvider,
    TagFilter,
    TimeWindowProvider,
)

__all__ = [
    "BLOCK",
    "CONTINUE",
    "DEFER",
    "SKIP",
    "AfterVisibility",
    "AgentBuilder",
    "AgentInfo",
    "Application",
    "ApplicationResult",
    "BatchSpec",
    "Board",
    "BoardReader",
    "Component",
    "CompositeProvider",
    "ContextProvider",
    "ContextRequest",
    "ContextSlice",
    "DefaultCorrelationProvider",
    "EmptyProvider",
    "Engine",
    "Envelope",
    "EvalContext",
    "EvalInputs",
    "EvalResult",
    "FilterConfig",
    "FilteredContextProvider",
    "FunctionEngine",
    "JoinSpec",
    "LabelledVisibility",
    "Missed",
    "ModelEngine",
    "Output",
    "PrivateVisibility",
    "PublicVisibility",
    "Publication",
    "RecentProvider",
    "RedactingProvider",
    "SemanticContextProvider",
    "Span",
    "StateDelegatingProvider",
    "SummarisingProvider",
    "TagFilter",
    "TenantVisibility",
    "TimeWindowProvider",
    "Trace",
    "Verdict",
    "Visibility",
    "artifact",
]
