"""Nodes and edges: what every drawing of a workflow is made of."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.diagrams.wording import shown
from weft.spec.tools import Tool, UiTool
from weft.spec.workflow import WorkflowSpec

NodeKind: TypeAlias = Literal[
    "start", "agent", "undeclared", "user", "end", "step", "branch", "fork", "approval", "undo"
]
EdgeKind: TypeAlias = Literal[
    "start", "rule", "fallback", "default", "joined", "artifact", "next", "failure"
]

#: Keys of the nodes that are no agents. Keys of agents begin with "agent:".
START_KEY: Final = "start"
USER_KEY: Final = "user"
END_KEY: Final = "end"


@dataclass(frozen=True, slots=True)
class Node:
    """One party: `role` is an agent's type or how the run begins.

    `notes` are what it is for and the tools to mention.
    """

    key: str
    kind: NodeKind
    title: str
    role: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """One handoff, or artifacts of one type; `before` means before the source replies."""

    source: str
    target: str
    kind: EdgeKind
    label: str
    before: bool = False
    reason: str = ""

    @property
    def dashed(self) -> bool:
        """Whether it is drawn with a broken line: not the usual course of things."""
        return self.before or self.kind == "failure"

    @property
    def returns(self) -> bool:
        """Whether the user's answer comes back to the agent at its source.

        An answer to a group goes to the group and not to the member the edge begins at.
        """
        return self.target == USER_KEY and self.kind != "joined"


@dataclass(frozen=True, slots=True)
class Graph:
    """A workflow to be drawn. Edges of one node stand in the order in which they are tried."""

    title: str
    description: str
    pattern: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def leaving(self) -> dict[str, list[Edge]]:
        found: dict[str, list[Edge]] = {node.key: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.source].append(edge)
        return found


def agent_key(name: str) -> str:
    return f"agent:{name}"


def reached(drawn: Graph) -> list[str]:
    """Return the keys that can be reached from where runs begin, nearest first."""
    leaving = drawn.leaving()
    pending = [node.key for node in drawn.nodes if node.kind == "start"]
    found = dict.fromkeys(pending)
    for key in pending:
        fresh = [edge.target for edge in leaving[key] if edge.target not in found]
        pending += dict.fromkeys(fresh)
        found.update(dict.fromkeys(fresh))
    return list(found)


def notes_of(spec: WorkflowSpec, agent: str | None) -> tuple[str, ...]:
    """List the tools and lifecycle tools of an agent; None asks for those of the run."""
    tools = [_tool_note(tool) for tool in spec.tools if tool.agent == agent]
    lifecycle = [
        f"{tool.trigger}: {tool.function}" for tool in spec.lifecycle_tools if tool.agent == agent
    ]
    return tuple(map(shown, (*tools, *lifecycle)))


def _tool_note(tool: Tool) -> str:
    if isinstance(tool, UiTool):
        return f"asks: {tool.function} ({tool.ui.component}, {tool.ui.mode})"
    return f"calls: {tool.function}{' (automatic)' if tool.auto_invoke else ''}"
