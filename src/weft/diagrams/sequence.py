"""A workflow as a sequence of messages, from the start.

An agent that is entered in one place only is drawn there. One that is entered in several places, or
too deep inside alternatives, gets a part of its own further down, so that nothing is drawn twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from weft.diagrams.graph import SIDE_BY_SIDE, graph
from weft.diagrams.nodes import (
    END_KEY,
    START_KEY,
    USER_KEY,
    Edge,
    Graph,
    Node,
    NodeKind,
    short_label,
)
from weft.errors import UsageError
from weft.spec.workflow import WorkflowSpec

#: How deep alternatives may be nested before a part of its own is easier to read.
MAX_NESTING: Final = 3


@dataclass(frozen=True, slots=True)
class Participant:
    """One lifeline."""

    key: str
    kind: NodeKind
    title: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One participant hands off to another; `before` means instead of a reply."""

    source: str
    target: str
    text: str
    before: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A remark at a participant."""

    over: str
    text: str


@dataclass(frozen=True, slots=True)
class Branch:
    """What happens under one condition."""

    label: str
    steps: "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class Block:
    """Alternatives of which one is taken (alt), what may happen (opt), all at once (par), or what
    happens again and again (loop).
    """

    kind: Literal["alt", "opt", "par", "loop"]
    branches: tuple[Branch, ...]

    @property
    def word(self) -> str:
        """The keyword before every branch but the first."""
        return "and" if self.kind == "par" else "else"


Step: TypeAlias = Message | Note | Block


@dataclass(frozen=True, slots=True)
class Sequence:
    """A story to be drawn."""

    title: str
    description: str
    participants: tuple[Participant, ...]
    steps: tuple[Step, ...]
    legend: tuple[str, ...]


def sequence(spec: WorkflowSpec) -> Sequence:
    """Return the messages of a workflow from its start; every agent appears.

    Raises UsageError for a board, whose agents have no fixed order, and for a flow, whose steps
    do not send messages to each other.
    """
    if spec.board is not None:
        raise UsageError(
            f"{spec.orchestrator.workflow_name} is a board, which has no sequence: its agents "
            "work whenever an artifact comes",
            hint="draw what leads to what: --kind graph",
        )
    if spec.flow is not None:
        raise UsageError(
            f"{spec.orchestrator.workflow_name} is a flow: its steps have an order, and no talk "
            "that a sequence could show",
            hint="draw its steps: --kind graph",
        )
    drawn = graph(spec)
    parties = [node for node in drawn.nodes if node.kind in ("agent", "undeclared")]
    steps = tuple(_steps(spec, drawn, parties))
    return Sequence(
        title=drawn.title,
        description=drawn.description,
        participants=(
            Participant(USER_KEY, "user", "user"),
            *(Participant(node.key, node.kind, node.title, node.role) for node in parties),
        ),
        steps=steps,
        legend=tuple(_legend(drawn)),
    )


@dataclass(slots=True)
class _Progress:
    """The agents drawn so far, and those that are still to be drawn."""

    nodes: Mapping[str, Node]
    leaving: Mapping[str, list[Edge]]
    entered_once: frozenset[str]
    drawn: set[str] = field(default_factory=set[str])
    waiting: list[str] = field(default_factory=list[str])

    def draws_here(self, edge: Edge, depth: int) -> bool:
        """Return whether the target's turn is drawn here; if not, remember it for later."""
        if edge.target in (USER_KEY, END_KEY) or edge.target in self.drawn:
            return False
        if edge.target in self.entered_once and depth <= MAX_NESTING:
            return True
        self.waiting.append(edge.target)
        return False


def _steps(spec: WorkflowSpec, drawn: Graph, parties: list[Node]) -> Iterator[Step]:
    progress = _Progress(
        nodes={node.key: node for node in drawn.nodes},
        leaving=drawn.leaving(),
        entered_once=_entered_once(drawn),
    )
    opening = progress.leaving[START_KEY][0]
    yield from _opening(spec, progress.nodes[START_KEY], opening)
    yield from _turns(opening.target, progress, depth=0)
    yield from _postponed_turns(progress)
    for node in parties:
        if node.key not in progress.drawn:
            yield Note(node.key, f"nothing leads to {node.title}")
            yield from _turns(node.key, progress, depth=0)
            yield from _postponed_turns(progress)


def _entered_once(drawn: Graph) -> frozenset[str]:
    entries: dict[str, int] = {}
    for edge in drawn.edges:
        entries[edge.target] = entries.get(edge.target, 0) + (edge.source != edge.target)
    return frozenset(key for key, count in entries.items() if count == 1)


def _opening(spec: WorkflowSpec, start: Node, opening: Edge) -> Iterator[Step]:
    first = opening.target
    for note in start.notes:
        yield Note(first, note)
    if opening.label == "the user speaks first":
        yield Message(USER_KEY, first, start.role)
    else:
        yield Note(first, f"{start.role}; {opening.label}")
    greeting = spec.orchestrator.initial_message_to_user
    if greeting:
        yield Message(first, USER_KEY, short_label(greeting, 60))


def _postponed_turns(progress: _Progress) -> Iterator[Step]:
    """Yield the postponed turns; the loop also sees those postponed meanwhile."""
    for key in progress.waiting:
        if key not in progress.drawn:
            yield Note(key, f"when {progress.nodes[key].title} has its turn")
            yield from _turns(key, progress, depth=0)
    progress.waiting.clear()


def _turns(key: str, progress: _Progress, *, depth: int) -> Iterator[Step]:
    """Yield one turn, and the following ones while there is only one possible handoff."""
    following: str | None = key
    while following is not None:
        key, following = following, None
        progress.drawn.add(key)
        for note in progress.nodes[key].notes:
            yield Note(key, note)
        ways = progress.leaving[key]
        before = [edge for edge in ways if edge.before]
        after = [edge for edge in ways if not edge.before]
        if before:
            yield _block(before, progress, depth)
        if len(after) == 1:
            yield from _handoff_steps(after[0], words=_words(after[0]))
            following = after[0].target if progress.draws_here(after[0], depth) else None
        elif after:
            yield _block(after, progress, depth)


def _block(edges: list[Edge], progress: _Progress, depth: int) -> Block:
    branches: list[Branch] = []
    for edge in edges:
        steps = list(_handoff_steps(edge))
        if progress.draws_here(edge, depth + 1):
            steps += _turns(edge.target, progress, depth=depth + 1)
        label = f"{edge.label}, before {progress.nodes[edge.source].title} replies"
        branches.append(Branch(label if edge.before else edge.label, tuple(steps)))
    if all(edge.label == SIDE_BY_SIDE for edge in edges):
        titles = [progress.nodes[edge.target].title for edge in edges]
        named = (
            Branch(title, branch.steps) for title, branch in zip(titles, branches, strict=True)
        )
        return Block("par", tuple(named))
    return Block("alt" if len(branches) > 1 else "opt", tuple(branches))


def _words(edge: Edge) -> str:
    """Return why the agent hands off, unless it is the only possibility."""
    return "" if edge.kind == "fallback" else edge.label


def _handoff_steps(edge: Edge, words: str = "") -> Iterator[Step]:
    """Yield the message of a handoff; `words` is its condition, unless a block shows it."""
    if edge.target == END_KEY:
        said = "; ".join(part for part in (words, edge.reason) if part)
        yield Note(edge.source, f"the run ends: {said}" if said else "the run ends")
        return
    usual = "waits for the user" if edge.target == USER_KEY else "hands over"
    yield Message(edge.source, edge.target, words or usual, edge.before)
    if edge.returns:
        yield Message(USER_KEY, edge.source, "answers")


def _legend(drawn: Graph) -> Iterator[str]:
    if any(edge.before for edge in drawn.edges):
        yield "dashed arrow: hands off before the agent replies"
    unruled = {edge.label for edge in drawn.edges if edge.kind in ("fallback", "default")}
    if any(label.startswith("otherwise") for label in unruled):
        yield "otherwise: none of the conditions before it holds"
    if any(label.endswith("by the pattern") for label in unruled):
        yield f"by the pattern: no rule says it, the pattern {drawn.pattern} does"
    if any(label.endswith("by default") for label in unruled):
        yield "by default: no rule says it, the default of the workflow does"
    if any(edge.target == USER_KEY for edge in drawn.edges):
        yield "after the user's answer the agent that asked continues"
