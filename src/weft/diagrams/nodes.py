"""Nodes and edges, which every diagram is made of, and the texts on them."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.errors import ExpressionError
from weft.spec.agents import Handoff
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import print_condition
from weft.spec.orchestrator import ChatStart, DatabaseStart, FormStart, ScheduleStart, Start
from weft.spec.tools import Tool, UiTool
from weft.spec.workflow import WorkflowSpec

#: Longest name, description of a workflow and other text that is shown; the rest is cut.
NAME_LENGTH: Final = 48
WORKFLOW_LENGTH: Final = 400
TEXT_LENGTH: Final = 120

#: The most characters of prose to process: a picture shows only the beginning.
_READ: Final = 2_000


def short_label(text: str, limit: int = TEXT_LENGTH) -> str:
    """Return text as one printable line of at most `limit` characters."""
    words = " ".join(text[:_READ].split())
    # Invisible characters could break a file format or change the writing direction.
    line = "".join(char if char.isprintable() else "\ufffd" for char in words)
    if len(line) > limit:
        line = line[: limit - 3].rstrip() + "..."
    return line or "(blank)"


def describe(text: str, limit: int = TEXT_LENGTH) -> str:
    """Return a description as one short line; empty if there is none."""
    return short_label(text, limit) if text.strip() else ""


def condition_words(handoff: Handoff) -> str:
    """Return when a handoff applies, in words; an invalid condition is shown as written."""
    if handoff.condition is None:
        return "always" if handoff.condition_scope == "pre" else "otherwise"
    words = _condition(handoff, handoff.condition)
    return words if handoff.priority == 1 else f"{words} (priority {handoff.priority})"


def _condition(handoff: Handoff, text: str) -> str:
    if handoff.condition_type == "llm":
        return f"a model says: {short_label(text)}"
    if handoff.condition_type == "nearest":
        return f"nearest to: {short_label(text)}"
    try:
        return short_label(print_condition(parse_condition(text)))
    except ExpressionError:
        return short_label(text)


def start_words(start: Start) -> str:
    match start:
        case ChatStart():
            return "a chat is opened"
        case FormStart(form=form):
            return (
                f"form {short_label(form, NAME_LENGTH)} is submitted"
                if form
                else "a form is submitted"
            )
        case ScheduleStart(cron=cron, timezone=zone):
            return short_label(f"schedule {cron} {zone}")
        case DatabaseStart(collection=collection, condition=condition):
            return short_label(f"{collection} changed: {condition}")
        case _:
            return short_label(f"webhook {start.path}") if start.path else "a webhook is called"


NodeKind: TypeAlias = Literal[
    "start", "agent", "undeclared", "user", "end", "step", "branch", "fork", "approval", "undo"
]
EdgeKind: TypeAlias = Literal[
    "start", "rule", "fallback", "default", "joined", "artifact", "next", "failure"
]

#: Keys of the nodes besides agents. Keys of agents begin with "agent:".
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
        """Whether it is drawn with a dashed line, as an exceptional case."""
        return self.before or self.kind == "failure"

    @property
    def returns(self) -> bool:
        """Whether the user's answer comes back to the agent at its source.

        An answer to a group goes to the group and not to the member the edge begins at.
        """
        return self.target == USER_KEY and self.kind != "joined"


@dataclass(frozen=True, slots=True)
class Graph:
    """A workflow to be drawn. Edges of one node are in the order in which they are tried."""

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


def reachable_keys(drawn: Graph) -> list[str]:
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
    return tuple(map(short_label, (*tools, *lifecycle)))


def _tool_note(tool: Tool) -> str:
    if isinstance(tool, UiTool):
        return f"asks: {tool.function} ({tool.ui.component}, {tool.ui.mode})"
    return f"calls: {tool.function}{' (automatic)' if tool.auto_invoke else ''}"
