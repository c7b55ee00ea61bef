"""A board as the rules see it: its parts, each with its place, and what its types hold."""

from collections.abc import Iterator
from typing import Final, cast

from weft.check.answer_schema import Lost, follow
from weft.check.declarations import PlacedCondition, parsed
from weft.check.subject import Subject, listed_once
from weft.check.values import is_complete
from weft.engine.board.rules import types_of
from weft.findings import Path
from weft.ids import OBJECT_REF
from weft.spec.board import (
    AfterVisibility,
    Board,
    BoardAgent,
    Component,
    FunctionEngine,
    Publication,
    Subscription,
    Visibility,
)
from weft.spec.part import JsonMap
from weft.spec.providers import (
    CompositeProvider,
    CustomProvider,
    Provider,
    RedactingProvider,
    SemanticProvider,
    SummaryProvider,
)
from weft.spec.type_meaning import json_schema
from weft.spec.types import Ref
from weft.spec.workflow import WorkflowSpec


def comparisons(spec: WorkflowSpec) -> Iterator[str]:
    """Yield what compares meanings, in words."""
    for handoff in spec.handoffs:
        if handoff.condition_type == "nearest":
            yield f"a handoff of {handoff.source_agent} is of the type nearest"
    subject = Subject(spec)
    for _, agent, it in subscriptions(subject):
        if it.semantic_match:
            yield f"a subscription of {agent.agent} has semantic_match"
    for _, agent, it in providers(subject):
        if isinstance(it, SemanticProvider):
            yield f"a provider of {agent.agent} is semantic"


NO_BOARD: Final = Board(artifacts=())

#: What begins the name of an object that only a process has that defines it.
LOCAL: Final = "local:"


def board_of(subject: Subject) -> Board:
    """Return the board of a workflow; one without parts where it has none."""
    return subject.spec.board or NO_BOARD


@listed_once
def agents_of(subject: Subject) -> Iterator[tuple[Path, BoardAgent]]:
    for index, agent in enumerate(board_of(subject).agents):
        yield ("board", "agents", index), agent


@listed_once
def subscriptions(subject: Subject) -> Iterator[tuple[Path, BoardAgent, Subscription]]:
    for path, agent in agents_of(subject):
        for index, it in enumerate(agent.consumes):
            yield (*path, "consumes", index), agent, it


@listed_once
def publications(subject: Subject) -> Iterator[tuple[Path, BoardAgent, Publication]]:
    for path, agent in agents_of(subject):
        for index, it in enumerate(agent.publishes):
            yield (*path, "publishes", index), agent, it


@listed_once
def components(subject: Subject) -> Iterator[tuple[Path, BoardAgent | None, Component]]:
    """Yield the components of the board, which belong to no agent, and those of agents."""
    for index, it in enumerate(board_of(subject).components):
        yield ("board", "components", index), None, it
    for path, agent in agents_of(subject):
        for index, it in enumerate(agent.components):
            yield (*path, "components", index), agent, it


@listed_once
def providers(subject: Subject) -> Iterator[tuple[Path, BoardAgent, Provider]]:
    """Yield every provider, those inside others too."""
    for path, agent in agents_of(subject):
        for key in ("consumes", "engines"):
            for index, it in enumerate(getattr(agent, key)):
                yield from _inside((*path, key, index, "context"), agent, it.context)
        yield from _inside((*path, "context"), agent, agent.context)
        yield from _inside((*path, "fallback"), agent, agent.fallback)


def _inside(
    path: Path, agent: BoardAgent, provider: Provider | None
) -> Iterator[tuple[Path, BoardAgent, Provider]]:
    if provider is None:
        return
    yield path, agent, provider
    if isinstance(provider, CompositeProvider):
        for index, it in enumerate(provider.providers):
            yield from _inside((*path, "providers", index), agent, it)
    elif isinstance(provider, RedactingProvider | SummaryProvider):
        yield from _inside((*path, "provider"), agent, provider.provider)


def policies(subject: Subject) -> Iterator[tuple[Path, Visibility]]:
    """Yield who may see what agents publish; what follows a delay comes by itself."""
    for path, _, it in publications(subject):
        place, policy = (*path, "visibility"), it.visibility
        while isinstance(policy, AfterVisibility):
            place, policy = (*place, "then"), policy.then
        if not isinstance(policy, str):
            yield place, policy


def references(subject: Subject) -> Iterator[tuple[Path, str]]:
    """Yield every `module:name` of a board."""
    yield from (((*path, "component"), it.component) for path, _, it in components(subject))
    yield from _of_engines(subject)
    for path, _, it in subscriptions(subject):
        if it.join and it.join.function:
            yield (*path, "join", "function"), it.join.function
    for path, _, it in publications(subject):
        if isinstance(it.visibility, str):
            yield (*path, "visibility"), it.visibility
    yield from ((path, text) for path, text, _ in _texts(subject) if OBJECT_REF.match(text))
    yield from _of_providers(subject)


def _of_engines(subject: Subject) -> Iterator[tuple[Path, str]]:
    for path, agent in agents_of(subject):
        for index, engine in enumerate(agent.engines):
            if isinstance(engine, FunctionEngine):
                yield (*path, "engines", index, "function"), engine.function
        if agent.best_of:
            yield (*path, "best_of", "score"), agent.best_of.score


def _of_providers(subject: Subject) -> Iterator[tuple[Path, str]]:
    for path, _, it in providers(subject):
        if isinstance(it, CustomProvider):
            yield (*path, "provider"), it.provider
        elif isinstance(it, RedactingProvider):
            for key, function in it.transform.items():
                yield (*path, "transform", key), function


@listed_once
def tested(subject: Subject) -> Iterator[PlacedCondition]:
    """Yield the conditions over payloads; what names a function is none."""
    for path, text, types in _texts(subject):
        if not OBJECT_REF.match(text):
            yield PlacedCondition(path, text, parsed(text), types)


def _texts(subject: Subject) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    for path, _, it in subscriptions(subject):
        if it.where:
            yield (*path, "where"), it.where, tuple(dict.fromkeys(it.types))
    for path, _, it in publications(subject):
        if it.where:
            yield (*path, "where"), it.where, (it.type,)
        if it.validate_:
            yield (*path, "validate"), it.validate_, (it.type,)


def known_types(subject: Subject) -> tuple[str, ...]:
    return tuple(types_of(board_of(subject)))


def schemas(subject: Subject) -> dict[str, JsonMap]:
    """Return what payloads of the types are like, as far as that is declared."""
    found: dict[str, JsonMap] = {}
    for it in board_of(subject).artifacts:
        if not isinstance(it, str):
            found[it.name] = it.schema_
        elif is_complete(Ref(it), subject.models):
            found[it] = cast("JsonMap", json_schema(Ref(it), subject.models))
    return found


def lost_in(subject: Subject, type_: str, field: str) -> Lost | None:
    """Say where a field, maybe inside others, is not found in a type, or None if it may be."""
    schema = subject.once(schemas).get(type_)
    found = None if schema is None else follow(schema, field)
    return found if isinstance(found, Lost) else None
