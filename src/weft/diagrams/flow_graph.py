"""A flow as nodes and edges: steps in order, branches, loops, paths side by side, failures.

It is drawn from the declarations alone, so that flows with invalid conditions or duplicate names
are drawn as well.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from weft.diagrams.nodes import (
    END_KEY,
    NAME_LENGTH,
    START_KEY,
    WORKFLOW_LENGTH,
    Edge,
    EdgeKind,
    Graph,
    Node,
    NodeKind,
    describe,
    reachable_keys,
    short_label,
)
from weft.spec import flow as declared
from weft.spec.flow import AgentWork, Approval, Branch, Flow, Fork, Path, Repeat, Step, Work
from weft.spec.part import JsonValue
from weft.spec.tools import LOCAL
from weft.spec.workflow import WorkflowSpec

#: Used in place of the pattern of a conversation.
FLOW: Final = "flow"

#: Keys besides the nodes of a flow: the end of a failed run, and the start of its failure path.
FAILED_KEY: Final = "failed"
FAILURE_KEY: Final = "failure"


def flow_graph(spec: WorkflowSpec, flow: Flow) -> Graph:
    """Return the steps of a flow and what leads from each to the next."""
    drawing = _Drawing()
    drawing.whole(flow)
    graph = Graph(
        title=short_label(spec.orchestrator.workflow_name, NAME_LENGTH),
        description=describe(spec.orchestrator.description, WORKFLOW_LENGTH),
        pattern=FLOW,
        nodes=tuple(drawing.nodes.values()),
        edges=tuple(drawing.edges),
    )
    return _in_order(graph)


def _in_order(graph: Graph) -> Graph:
    """Sort nodes and edges from the start: they were drawn from the end."""
    rank = {key: place for place, key in enumerate(reachable_keys(graph))}
    last = len(rank)
    nodes = sorted(graph.nodes, key=lambda node: rank.get(node.key, last))
    edges = sorted(graph.edges, key=lambda edge: rank.get(edge.source, last))
    return Graph(graph.title, graph.description, graph.pattern, tuple(nodes), tuple(edges))


class _Drawing:
    """Draws nodes from the last to the first: where one leads is known before it is drawn."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.edges: list[Edge] = []
        self._number = 0

    def whole(self, flow: Flow) -> None:
        """Draw all of a flow."""
        self._put(Node(START_KEY, "start", "start", "the run begins"))
        self._put(Node(END_KEY, "end", "end"))
        last = END_KEY
        if flow.finally_ is not None:
            last = self._step(flow.finally_, END_KEY, FAILED_KEY, role="finally,")
        self._edge(START_KEY, self._line(flow.steps, last, FAILED_KEY))
        if flow.on_failure is not None:
            self._put(Node(FAILURE_KEY, "start", "on failure", "before the run ends as failed"))
            self._failing(FAILURE_KEY, flow.on_failure, "")
        ends = {edge.target for edge in self.edges}
        if FAILED_KEY in ends:
            self._put(Node(FAILED_KEY, "end", "failed"))
        if END_KEY not in ends:
            del self.nodes[END_KEY]

    def _put(self, node: Node) -> None:
        self.nodes[node.key] = node

    def _key(self) -> str:
        self._number += 1
        return f"step:{self._number}"

    def _edge(self, source: str, target: str, label: str = "", kind: EdgeKind = "next") -> None:
        self.edges.append(Edge(source, target, kind, short_label(label) if label else ""))

    def _add(
        self, key: str, kind: NodeKind, name: str, role: str, notes: Sequence[str] = ()
    ) -> None:
        labels = tuple(short_label(note) for note in notes)
        self._put(Node(key, kind, short_label(name, NAME_LENGTH), short_label(role), labels))

    def _line(self, nodes: Sequence[declared.Node], after: str, fails: str) -> str:
        """Draw a sequence of nodes; return the first key. `fails` is the target of failures."""
        for node in reversed(nodes):
            match node:
                case Step():
                    after = self._step(node, after, fails)
                case Branch():
                    after = self._branch(node, after, fails)
                case Fork():
                    after = self._fork(node, after, fails)
                case Repeat():
                    after = self._repeat(node, after, fails)
                case Approval():
                    after = self._approval(node, after, fails)
        return after

    def _path(self, path: Path, after: str, fails: str) -> str:
        return self._line(path.steps, END_KEY if path.ends else after, fails)

    def _failing(self, source: str, path: Path, label: str) -> None:
        """Draw a failure path: it never leads back."""
        first = self._line(path.steps, FAILED_KEY, FAILED_KEY)
        self._edge(source, first, label, "failure")

    def _step(self, step: Step, after: str, fails: str, role: str = "") -> str:
        key = self._key()
        work = " ".join(filter(None, (role, _work(step.work))))
        self._add(key, "step", step.name, work, tuple(_notes(step)))
        self._edge(key, after)
        if step.confidence is not None and step.confidence.path is not None:
            target = self._path(step.confidence.path, after, fails)
            self._edge(key, target, f"confidence below {step.confidence.minimum:g}")
        if step.on_failure is not None:
            self._failing(key, step.on_failure, "on failure")
        if step.compensate is not None:
            undo = self._key()
            self._add(undo, "undo", f"undo {step.name}", _work(step.compensate))
            self._edge(key, undo, "compensate", "failure")
        return key

    def _branch(self, branch: Branch, after: str, fails: str) -> str:
        key = self._key()
        notes = () if branch.otherwise else ("another value fails the run",)
        if {case.value for case in branch.cases if isinstance(case.value, bool)} == {True, False}:
            notes = ()
        self._add(key, "branch", branch.name, f"branch on {branch.on}", notes)
        for case in branch.cases:
            self._edge(key, self._path(case.path, after, fails), _value(case.value))
        if branch.otherwise is not None:
            self._edge(key, self._path(branch.otherwise, after, fails), "otherwise")
        return key

    def _fork(self, fork: Fork, after: str, fails: str) -> str:
        key, join = self._key(), self._key()
        if fork.join is None:
            self._add(join, "fork", f"join {fork.name}", "when all paths are over")
            self._edge(join, after)
        else:
            join = self._step(fork.join, after, fails, role="join,")
        self._add(key, "fork", f"fork {fork.name}", "paths side by side")
        for path in fork.paths:
            self._edge(key, self._line(path.steps, join, join), f"path {path.name}")
            if path.on_failure is not None:
                target = self._path(path.on_failure, join, join)
                self._edge(key, target, f"path {path.name} failed", "failure")
        return key

    def _repeat(self, loop: Repeat, after: str, fails: str) -> str:
        key = self._key()
        first = self._line(loop.steps, key, fails)
        limit = f"at most {loop.max_iterations} times"
        self._add(key, "branch", loop.name, f"loop until {loop.until}", (limit,))
        self._edge(key, first, "again")
        self._edge(key, after, "done")
        return first

    def _approval(self, approval: Approval, after: str, fails: str) -> str:
        key = self._key()
        self._add(
            key, "approval", approval.name, f"approval of {approval.approver}", _asking(approval)
        )
        goes_on = [option.name for option in approval.options if not option.rejects]
        self._edge(key, after, " or ".join(goes_on))
        rejects = " or ".join(option.name for option in approval.options if option.rejects)
        if approval.on_rejection is not None and rejects:
            self._edge(key, self._path(approval.on_rejection, after, fails), rejects)
        elif rejects:
            self._edge(key, fails, rejects, "failure")
        if approval.on_timeout is not None:
            self._edge(key, self._path(approval.on_timeout, after, fails), "no answer")
        return key


def _work(work: Work) -> str:
    if isinstance(work, AgentWork):
        return f"agent {work.agent}"
    return f"function {work.function.removeprefix(LOCAL)}"


def _value(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _notes(step: Step) -> Iterator[str]:
    for guard in step.validate_:
        yield f"requires {guard.condition}"
    if step.retry is not None:
        yield f"up to {step.retry.attempts} attempts"
    if step.timeout_seconds is not None:
        yield f"timeout {step.timeout_seconds:g} s"
    if step.confidence is not None and step.confidence.path is None:
        yield f"fails below confidence {step.confidence.minimum:g}"


def _asking(approval: Approval) -> tuple[str, ...]:
    notes = [f"after {approval.timeout_seconds:g} s"]
    for escalation in approval.escalate:
        notes[-1] += f": asks {escalation.approver}"
        notes.append(f"after {escalation.timeout_seconds:g} s more")
    if approval.default is not None:
        notes[-1] += f": {approval.default}"
    elif approval.on_timeout is None:
        notes[-1] += ": fails"
    else:
        notes.pop()
    return tuple(notes)
