"""The plan of a flow: where each of its nodes leads, computed once for all runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.findings import Json
from weft.spec.agents import HistoryIngredient
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
from weft.spec.flow import (
    AgentWork,
    Approval,
    Branch,
    Flow,
    Fork,
    Node,
    Path,
    Repeat,
    Step,
    Work,
)

#: The ends of lanes: of the run, of a path of a fork, of a failure path, and of the workflow's
#: failure path. No node has these names.
END: Final = "/end"
JOIN: Final = "/join"
FAILED: Final = "/failed"
OVER: Final = "/over"

#: The prefix of the place after the last step of a loop.
AGAIN: Final = "/again:"

#: The prefix of the tool that asks for an approval.
APPROVAL: Final = "approval:"


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step, and where it leads."""

    step: Step
    next: str
    guards: tuple[tuple[Condition, str], ...] = ()
    #: Where a result of low confidence leads, and where a failure leads; empty for nowhere.
    unsure: str = ""
    on_failure: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalPlan:
    """An approval, and where the answers lead."""

    approval: Approval
    next: str
    on_timeout: str = ""
    on_rejection: str = ""


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """Which value leads where."""

    on: Condition
    cases: tuple[tuple[Json, str], ...]
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class PathPlan:
    """Where a path of a fork begins, and what is done when it fails."""

    name: str
    first: str
    on_failure: str = ""


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """Parallel paths, and the step after them."""

    paths: tuple[PathPlan, ...]
    join: str


@dataclass(frozen=True, slots=True)
class RepeatPlan:
    """Where a loop begins, when it ends, and the node after it."""

    first: str
    until: Condition
    limit: int
    next: str


NodePlan: TypeAlias = StepPlan | ApprovalPlan | BranchPlan | ForkPlan | RepeatPlan


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """All nodes by name, and where a run begins."""

    spec: Flow
    first: str
    nodes: Mapping[str, NodePlan]
    #: Where the failure path of the workflow begins; empty if there is none.
    on_failure: str = ""
    #: The agents whose conversations are kept from step to step.
    remembered: frozenset[str] = field(default_factory=frozenset[str])

    def step(self, name: str) -> StepPlan:
        """Return a step by its name."""
        node = self.nodes[name]
        assert isinstance(node, StepPlan)  # noqa: S101 - only steps and approvals are started
        return node


def compile_flow(flow: Flow) -> FlowPlan:
    """Compile a flow: where every node leads."""
    writer = _Planner()
    last = END if flow.finally_ is None else writer.step(flow.finally_, END)
    return FlowPlan(
        flow,
        writer.line(flow.steps, last),
        writer.nodes,
        writer.path(flow.on_failure, OVER, OVER),
        frozenset(_remembered(flow)),
    )


def role_of(agent: str, step: str, *, undoes: bool = False) -> str:
    """Return the role of an agent at a step, because each step may show it another context."""
    return f"{agent}/{step}/undo" if undoes else f"{agent}/{step}"


def roles(flow: Flow) -> Iterator[tuple[str, Step, AgentWork]]:
    """Yield every role that an agent has in a flow."""
    for step in steps_of(flow):
        for work, undoes in ((step.work, False), (step.compensate, True)):
            if isinstance(work, AgentWork):
                yield role_of(work.agent, step.name, undoes=undoes), step, work


def steps_of(flow: Flow) -> Iterator[Step]:
    """Yield every step of a flow, at any depth."""
    return (node for node in nodes_of(flow) if isinstance(node, Step))


def works_of(flow: Flow) -> Iterator[Work]:
    """Yield the work of every step and of its compensation."""
    for step in steps_of(flow):
        yield step.work
        if step.compensate is not None:
            yield step.compensate


def nodes_of(flow: Flow) -> Iterator[Node]:
    """Yield every node of a flow, in the order they are written."""
    yield from _within(flow.steps)
    yield from _within(filter(None, (flow.finally_,)))
    yield from _along(flow.on_failure)


def _within(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        match node:
            case Step(on_failure=path, confidence=confidence):
                yield from _along(confidence and confidence.path)
                yield from _along(path)
            case Branch(cases=cases, otherwise=otherwise):
                for case in cases:
                    yield from _along(case.path)
                yield from _along(otherwise)
            case Fork(paths=paths, join=join):
                for path in paths:
                    yield from _within(path.steps)
                    yield from _along(path.on_failure)
                yield from _within(filter(None, (join,)))
            case Repeat(steps=steps):
                yield from _within(steps)
            case _:
                yield from _along(node.on_timeout)
                yield from _along(node.on_rejection)


def _along(path: Path | None) -> Iterator[Node]:
    return _within(path.steps if path is not None else ())


def _remembered(flow: Flow) -> Iterator[str]:
    for _, step, work in roles(flow):
        sources = step.context.sources if step.context is not None else ()
        if any(isinstance(source, HistoryIngredient) for source in sources):
            yield work.agent


class _Planner:
    """Links nodes from the last to the first, so that the target of each is known."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodePlan] = {}

    def line(self, nodes: Sequence[Node], after: str) -> str:
        """Link nodes that follow each other; return where the line begins."""
        for node in reversed(nodes):
            after = self._node(node, after)
        return after

    def path(self, path: Path | None, after: str, end: str = END) -> str:
        """Link a path that leads back, or to an end; return where it begins, empty if nowhere."""
        if path is None:
            return ""
        return self.line(path.steps, end if path.ends else after)

    def step(self, step: Step, after: str) -> str:
        unsure = self.path(step.confidence.path, after) if step.confidence is not None else ""
        self.nodes[step.name] = StepPlan(
            step,
            after,
            tuple((_condition(check.condition), check.message) for check in step.validate_),
            unsure,
            self.path(step.on_failure, FAILED, FAILED),
        )
        return step.name

    def _node(self, node: Node, after: str) -> str:
        match node:
            case Step():
                return self.step(node, after)
            case Branch(cases=cases):
                self.nodes[node.name] = BranchPlan(
                    _condition(node.on),
                    tuple((case.value, self.path(case.path, after)) for case in cases),
                    self.path(node.otherwise, after),
                )
            case Fork():
                self.nodes[node.name] = self._fork(node, after)
            case Repeat(steps=steps):
                first = self.line(steps, f"{AGAIN}{node.name}")
                until = _condition(node.until)
                self.nodes[node.name] = RepeatPlan(first, until, node.max_iterations, after)
            case _:
                self.nodes[node.name] = ApprovalPlan(
                    node,
                    after,
                    self.path(node.on_timeout, after),
                    self.path(node.on_rejection, after),
                )
        return node.name

    def _fork(self, fork: Fork, after: str) -> ForkPlan:
        join = after if fork.join is None else self.step(fork.join, after)
        paths = (
            PathPlan(path.name, self.line(path.steps, JOIN), self.path(path.on_failure, JOIN, JOIN))
            for path in fork.paths
        )
        return ForkPlan(tuple(paths), join)


def _condition(text: str) -> Condition:
    return parse_condition(text, paths=True)
