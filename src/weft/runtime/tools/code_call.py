"""Calls user code for an activation: engines, steps and hooks are all called this way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from weft.context.similarity import Similarity
from weft.engine.state import Activation, State
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.retrieval import Retrievers
from weft.ports.store import BoardIndex
from weft.ports.tools import Call
from weft.runtime.flow.retrieval import SearchMemory
from weft.runtime.tools.context_variables import Context
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class CodePorts:
    """The ports of a host that user code reads through."""

    store: BoardIndex
    clock: Clock
    #: Compares the meanings of texts; None without embeddings.
    similarity: Similarity | None = None
    retrievers: Retrievers | None = None
    searches: SearchMemory = field(default_factory=SearchMemory)


#: The turn of code that is called with an artifact from outside.
OUTSIDE: Final = Activation("", 0)


@dataclass(frozen=True, slots=True)
class CodeCall:
    """A call of user code: its run and turn, and the data besides its arguments."""

    ports: CodePorts
    workflow: Workflow
    state: State
    call: Call
    active: Activation = OUTSIDE
    variables: Context | None = None
    #: Variables that were just read and are not in the state yet.
    fresh: Mapping[str, Json] = field(default_factory=dict[str, Json])

    async def invoke(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Call a function within its time limit; raises ToolError with its name."""
        log_name = self.call.log_name
        if not log_name and self.active is not OUTSIDE:
            log_name = f"{name} of agent {self.active.agent}"
        call = replace(
            self.call, name=name, function=function, arguments=arguments, log_name=log_name
        )
        return await self.workflow.tools.call(call)
