"""What a store keeps of a board beside the events: an index of artifacts, who used which, letters.

All of it follows from the events of a batch, so it can be made anew from the journal.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from weft.engine.board.visibility import Policy, stored_audience
from weft.engine.events import Event, TurnStarted
from weft.engine.events.board import ArtifactArrived, ArtifactPublished
from weft.engine.state import State


class ArtifactRow(NamedTuple):
    """An artifact as it is looked up; its payload stays in its event."""

    app: str
    run: str
    seq: int
    board: str
    id: str
    type: str
    by: str
    correlation: str
    partition: str
    created_at: int
    visible_at: int
    policy: Policy
    names: tuple[str, ...]
    tags: tuple[str, ...]


class ConsumedRow(NamedTuple):
    """An agent was woken by an artifact."""

    app: str
    board: str
    agent: str
    artifact: str
    run: str
    turn: int
    at: int


class Letter(NamedTuple):
    """An artifact on its way to the run that collects it beyond its correlation."""

    app: str
    #: What the runs of this collection are called, and the workflow they are of.
    to: str
    workflow: str
    digest: str
    user: str
    data: ArtifactArrived


class LetterTaken(NamedTuple):
    """A letter that is in the journal of the run it was for."""

    app: str
    id: str


BoardSide: TypeAlias = ArtifactRow | ConsumedRow | Letter | LetterTaken


def board_sides(state: State, events: Sequence[Event]) -> Iterator[BoardSide]:
    """Yield what a batch of a board writes beside its events."""
    correlation = state.board.correlation if state.board else ""
    for event in events:
        match event.data:
            case ArtifactPublished() as data:
                yield _artifact(state, correlation, event, data)
                if not state.forked_from:  # What if: nobody else hears of a fork.
                    yield from _letters(state, correlation, event, data)
            case TurnStarted(agent=agent, inputs=inputs):
                for it in inputs:
                    yield ConsumedRow(
                        state.app, state.workflow, agent, it, state.run, event.turn, event.at
                    )
            case ArtifactArrived(letter=letter):
                yield LetterTaken(state.app, letter)
            case _:
                pass


def _artifact(state: State, correlation: str, event: Event, data: ArtifactPublished) -> ArtifactRow:
    seen = stored_audience(data.visibility, created_at=event.at, tenant=state.app)
    return ArtifactRow(
        app=state.app,
        board=state.workflow,
        id=data.id,
        type=data.type,
        by=data.by,
        correlation=correlation,
        partition=data.partition,
        created_at=event.at,
        visible_at=seen.visible_at,
        policy=seen.policy,
        names=seen.names,
        tags=data.tags,
        run=state.run,
        seq=event.seq,
    )


def _letters(
    state: State, correlation: str, event: Event, data: ArtifactPublished
) -> Iterator[Letter]:
    for to, subscription in data.letters.items():
        arrived = ArtifactArrived(
            letter=f"{state.run}.{event.seq}.{subscription}",
            id=data.id,
            type=data.type,
            payload=data.payload,
            by=data.by,
            subscription=subscription,
            key=data.wakes[subscription],
            correlation=correlation,
            created_at=event.at,
            tags=data.tags,
            partition=data.partition,
            visible_at=event.at + data.delay,
        )
        yield Letter(state.app, to, state.workflow, state.digest, state.user, arrived)
