"""The root: everything one workflow declares, whichever way it was written."""

from pydantic import Field

from weft.spec.agents import Agent, Handoff
from weft.spec.board import Board
from weft.spec.flow import Flow
from weft.spec.orchestrator import Orchestrator
from weft.spec.outputs import OutputBinding, OutputModel
from weft.spec.part import Name, Part
from weft.spec.tools import Hook, LifecycleTool, McpServer, Tool
from weft.spec.variables import Variable


class WorkflowSpec(Part):
    """One workflow."""

    orchestrator: Orchestrator
    agents: tuple[Agent, ...] = ()
    variables: dict[Name, Variable] = Field(default={}, description="By name.")
    exposure: dict[Name, tuple[Name, ...]] = Field(
        default={}, description="Which variables stand in which agent's prompt."
    )
    handoffs: tuple[Handoff, ...] = ()
    tools: tuple[Tool, ...] = ()
    lifecycle_tools: tuple[LifecycleTool, ...] = ()
    mcp_servers: tuple[McpServer, ...] = Field(
        default=(), description="Servers whose tools agents may use."
    )
    hooks: tuple[Hook, ...] = ()
    models: tuple[OutputModel, ...] = ()
    registry: tuple[OutputBinding, ...] = ()
    flow: Flow | None = None
    board: Board | None = None
