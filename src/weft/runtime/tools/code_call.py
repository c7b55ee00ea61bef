"""Calling user code for an activation: the one way in which engines, steps and hooks are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.context.similarity import Similarity
from weft.engine.state import Activation, State
from weft.findings import Json
from weft.ports.board import BoardStore
from weft.ports.clock import Clock
from weft.ports.retrieval import Retrievers
from weft.ports.tools import Call
from weft.runtime.flow.retrieval import SearchMemory
from weft.runtime.tools.context_variables import Context
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class CodePorts:
    """The ports of a host that user code reads through."""

    store: BoardStore
    clock: Clock
    #: What compares the meanings of texts; None where there are no embeddings.
    similarity: Similarity | None = None
    retrievers: Retrievers | None = None
    searches: SearchMemory = field(default_factory=SearchMemory)


@dataclass(frozen=True, slots=True)
class CodeCall:
    """User code about to be called: in which run and turn, and with what beside its arguments.

    An artifact that is published from outside belongs to no turn: its number is 0.
    """

    ports: CodePorts
    workflow: Workflow
    state: State
    call: Call
    turn: int = 0
    variables: Context | None = None
    #: Variables that were read just now and that the state does not have yet.
    fresh: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def active(self) -> Activation:
        return self.state.active[self.turn]

    async def invoke(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Call a function within its time limit; raises ToolError with its name."""
        log_name = self.call.log_name
        if not log_name and self.turn:
            log_name = f"{name} of agent {self.active.agent}"
        call = replace(
            self.call, name=name, function=function, arguments=arguments, log_name=log_name
        )
        return await self.workflow.tools.call(call)
