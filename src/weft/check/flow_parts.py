"""A flow as the rules see it: nodes and paths, each with its place, and what the state holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.check.answer_schema import Lost
from weft.check.declarations import PlacedCondition, parsed
from weft.check.subject import Subject, listed_once
from weft.check.values import variable_types
from weft.findings import Path
from weft.spec import flow as spec
from weft.spec.type_meaning import Models
from weft.spec.types import ANY, DictOf, OptionalOf, Ref, Scalar, TypeExpr, UnionOf
from weft.spec.variables import DerivedSource

NO_FLOW: Final = spec.Flow()

#: What belongs to the order of a flow: a node, or steps aside of the main line.
FlowPart: TypeAlias = spec.Node | spec.Path


#: What a part stands inside of, where that changes what it may do. Steps of a failure path are
#: "aside" of what is undone; a path of a fork inside of one undoes its own steps again.
Inside: TypeAlias = frozenset[Literal["fork", "failure", "aside"]]

_OUTSIDE: Final[Inside] = frozenset()
_FORK: Final[Inside] = frozenset({"fork"})
_FAILURE: Final[Inside] = frozenset({"failure", "aside"})
_ASIDE: Final[Inside] = frozenset({"aside"})


@dataclass(frozen=True, slots=True)
class Placed:
    """A node or path of a flow. Inside of a failure is what is done after one."""

    path: Path
    part: FlowPart
    inside: Inside


def is_flow(subject: Subject) -> bool:
    """Tell whether a workflow is a flow; of one beside a board, BOARD001 speaks."""
    return subject.spec.flow is not None and subject.spec.board is None


def flow_of(subject: Subject) -> spec.Flow:
    """Return the flow of a workflow; one without steps where it has none."""
    return subject.spec.flow or NO_FLOW


@listed_once
def placed_parts(subject: Subject) -> Iterator[Placed]:
    """Yield every node and path, those inside others too, in the order of the file."""
    flow = flow_of(subject)
    yield from _sequence(("flow", "steps"), flow.steps, _OUTSIDE)
    if flow.finally_:
        yield from _node(("flow", "finally"), flow.finally_, _OUTSIDE)
    yield from _aside(("flow", "on_failure"), flow.on_failure, _FAILURE)


def _sequence(path: Path, nodes: tuple[spec.Node, ...], inside: Inside) -> Iterator[Placed]:
    for index, node in enumerate(nodes):
        yield from _node((*path, index), node, inside)


def _aside(path: Path, aside: spec.Path | None, inside: Inside) -> Iterator[Placed]:
    if aside is not None:
        yield Placed(path, aside, inside)
        yield from _sequence((*path, "steps"), aside.steps, inside)


def _node(path: Path, node: spec.Node, inside: Inside) -> Iterator[Placed]:
    yield Placed(path, node, inside)
    match node:
        case spec.Step():
            if node.confidence:
                yield from _aside((*path, "confidence", "path"), node.confidence.path, inside)
            yield from _aside((*path, "on_failure"), node.on_failure, inside | _FAILURE)
        case spec.Branch():
            for index, case in enumerate(node.cases):
                yield from _aside((*path, "cases", index, "path"), case.path, inside)
            yield from _aside((*path, "otherwise"), node.otherwise, inside)
        case spec.Fork():
            for index, it in enumerate(node.paths):
                inner: Path = (*path, "paths", index)
                beside = (inside | _FORK) - _ASIDE
                yield from _sequence((*inner, "steps"), it.steps, beside)
                yield from _aside((*inner, "on_failure"), it.on_failure, beside)
            if node.join:
                yield from _node((*path, "join"), node.join, inside)
        case spec.Repeat():
            yield from _sequence((*path, "steps"), node.steps, inside)
        case _:
            yield from _aside((*path, "on_timeout"), node.on_timeout, inside)
            yield from _aside((*path, "on_rejection"), node.on_rejection, inside)


@listed_once
def steps(subject: Subject) -> Iterator[tuple[Path, spec.Step]]:
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Step):
            yield it.path, it.part


@listed_once
def works(subject: Subject) -> Iterator[tuple[Path, spec.Step, spec.Work]]:
    """Yield what does the work of each step, and what undoes it."""
    for path, step in steps(subject):
        yield (*path, "work"), step, step.work
        if step.compensate:
            yield (*path, "compensate"), step, step.compensate


@listed_once
def sources(subject: Subject) -> Iterator[tuple[Path, spec.Step, spec.StepIngredient]]:
    for path, step in steps(subject):
        for index, it in enumerate(step.context.sources if step.context else ()):
            yield (*path, "context", "sources", index), step, it


def references(subject: Subject) -> Iterator[tuple[Path, str]]:
    """Yield every `module:name` of a flow."""
    flow = flow_of(subject)
    if flow.state:
        yield ("flow", "state"), flow.state
    for path, _, work in works(subject):
        if isinstance(work, spec.FunctionWork):
            yield (*path, "function"), work.function
        elif work.step:
            yield (*path, "step"), work.step
    for path, step in steps(subject):
        if step.context and step.context.assembler:
            yield (*path, "context", "assembler"), step.context.assembler


@listed_once
def tested(subject: Subject) -> Iterator[PlacedCondition]:
    for it in placed_parts(subject):
        match it.part:
            case spec.Branch(on=text):
                yield _tested((*it.path, "on"), text)
            case spec.Repeat(until=text):
                yield _tested((*it.path, "until"), text)
            case spec.Step(validate_=guards):
                for index, guard in enumerate(guards):
                    yield _tested((*it.path, "validate", index, "condition"), guard.condition)
            case _:
                pass


def _tested(path: Path, text: str) -> PlacedCondition:
    return PlacedCondition(path, text, parsed(text, paths=True))


def texts(subject: Subject) -> Iterator[tuple[Path, str]]:
    """Yield the texts that fields of the state are inserted into."""
    for path, _, work in works(subject):
        if isinstance(work, spec.AgentWork):
            yield (*path, "prompt"), work.prompt
    for it in placed_parts(subject):
        if isinstance(it.part, spec.Approval):
            yield (*it.path, "text"), it.part.text


# -- the state


def state_fields(subject: Subject) -> tuple[str, ...]:
    """Return the fields of the state: what steps may set."""
    return tuple(name for name, _ in subject.sources(DerivedSource))


def type_at(subject: Subject, name: str) -> TypeExpr | Lost:
    """Return the type of a variable or of a part of it; `any` where that is left open."""
    first, *rest = name.split(".")
    if first not in subject.variable_names:
        return Lost(first, 0, tuple(sorted(subject.variable_names)))
    type_: TypeExpr = subject.once(variable_types).get(first, ANY)
    offset = len(first) + 1
    for step in rest:
        found = _part(type_, step, subject.models)
        if found is None:
            return Lost(step, offset, tuple(_keys(type_, subject.models)))
        type_, offset = found, offset + len(step) + 1
    return type_


def _part(type_: TypeExpr, key: str, models: Models) -> TypeExpr | None:
    """Return the type of what stands under a key, or None if nothing does."""
    match type_:
        case OptionalOf(of):
            inner = _part(of, key, models)
            return inner if inner is None or isinstance(inner, OptionalOf) else OptionalOf(inner)
        case UnionOf(members):
            found = [inner for it in members if (inner := _part(it, key, models)) is not None]
            return ANY if len(found) > 1 else next(iter(found), None)
        case DictOf(of):
            return of
        case Ref(name):
            return models[name].get(key)
        case Scalar("any"):
            return type_
        case _:
            return None


def _keys(type_: TypeExpr, models: Models) -> Iterator[str]:
    match type_:
        case OptionalOf(of):
            yield from _keys(of, models)
        case UnionOf(members):
            for member in members:
                yield from _keys(member, models)
        case Ref(name):
            yield from models[name]
        case _:
            return
