"""The board of a workflow: its types with their schemas, and what it compares by meaning."""

from collections.abc import Iterator
from typing import Final, cast

from weft.check.answer_schema import UnknownKey, follow
from weft.check.parts import kinds_in, owned, parts_of
from weft.check.subject import Subject
from weft.check.values import is_complete
from weft.engine.board.rules import types_of
from weft.findings import Path
from weft.spec.agents import Handoff
from weft.spec.board import Board, BoardAgent, Subscription
from weft.spec.part import JsonMap
from weft.spec.providers import Provider, SemanticContextProvider
from weft.spec.type_meaning import json_schema
from weft.spec.types import Ref
from weft.spec.workflow import WorkflowSpec

NO_BOARD: Final = Board(artifacts=())

#: The prefix of objects that exist only in the program that defines the workflow.
LOCAL: Final = "local:"

_PROVIDERS: Final = kinds_in(Provider)


def comparisons(spec: WorkflowSpec) -> Iterator[str]:
    """Yield a phrase for each part that compares texts by meaning."""
    subject = Subject(spec)
    for _, handoff in parts_of(subject, Handoff):
        if handoff.condition_type == "nearest":
            yield f"a handoff of {handoff.source_agent} is of the type nearest"
    for _, agent, subscription in owned(subject, BoardAgent, Subscription):
        if subscription.semantic_match:
            yield f"a subscription of {agent.agent} has semantic_match"
    for _, agent, _ in owned(subject, BoardAgent, SemanticContextProvider):
        yield f"a provider of {agent.agent} is semantic"


def board_of(subject: Subject) -> Board:
    """Return the board of a workflow, or an empty board if it has none."""
    return subject.spec.board or NO_BOARD


def providers(subject: Subject) -> Iterator[tuple[Path, BoardAgent, Provider]]:
    """Yield every provider with its agent, nested ones included."""
    return cast(
        "Iterator[tuple[Path, BoardAgent, Provider]]", owned(subject, BoardAgent, *_PROVIDERS)
    )


def known_types(subject: Subject) -> tuple[str, ...]:
    return tuple(types_of(board_of(subject)))


def schemas(subject: Subject) -> dict[str, JsonMap]:
    """Return the declared payload schemas by artifact type."""
    found: dict[str, JsonMap] = {}
    for artifact in board_of(subject).artifacts:
        if not isinstance(artifact, str):
            found[artifact.name] = artifact.schema_
        elif is_complete(Ref(artifact), subject.models):
            found[artifact] = cast("JsonMap", json_schema(Ref(artifact), subject.models))
    return found


def lost_in(subject: Subject, type_: str, field: str) -> UnknownKey | None:
    """Return where the dotted path of a field leaves the type, or None if it may exist."""
    schema = subject.once(schemas).get(type_)
    found = None if schema is None else follow(schema, field)
    return found if isinstance(found, UnknownKey) else None
