"""A board as nodes and edges: who publishes what, and whom it wakes."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from weft.diagrams.nodes import (
    NAME_LENGTH,
    START_KEY,
    WORKFLOW_LENGTH,
    Edge,
    Graph,
    Node,
    agent_key,
    describe,
    notes_of,
    short_label,
)
from weft.engine.board.visibility import Identity, audience, may_see
from weft.spec.board import Board, BoardAgent, Join, Publication, Schedule, Subscription
from weft.spec.workflow import WorkflowSpec

#: Used in place of the pattern of a conversation.
BOARD: Final = "board"

#: Prefix of a publisher that is a person.
_PERSON: Final = "user:"


def board_graph(spec: WorkflowSpec, board: Board) -> Graph:
    """Return the agents of a board, what wakes each of them and from whom that comes."""
    edges = tuple(edge for agent in board.agents for edge in _waking_edges(board, agent))
    return Graph(
        title=short_label(spec.orchestrator.workflow_name, NAME_LENGTH),
        description=describe(spec.orchestrator.description, WORKFLOW_LENGTH),
        pattern=BOARD,
        nodes=tuple(_nodes(spec, board, edges)),
        edges=edges,
    )


def _clock_key(agent: str) -> str:
    return f"clock:{agent}"


def _nodes(spec: WorkflowSpec, board: Board, edges: tuple[Edge, ...]) -> Iterator[Node]:
    is_empty = not (board.agents or spec.agents)
    if is_empty or any(edge.source == START_KEY for edge in edges):
        yield Node(START_KEY, "start", "outside", "publishes artifacts")
    for agent in {agent.agent: agent for agent in board.agents if agent.schedule}:
        yield Node(_clock_key(agent), "start", "clock", "wakes by its schedule")
    takes_part = {agent.agent: agent for agent in board.agents}
    declared = {agent.agent_name: agent for agent in spec.agents}
    for name in dict.fromkeys([*declared, *takes_part]):
        about = declared.get(name)
        description = describe(about.description) if about else ""
        made = _unconsumed_types(board, takes_part[name]) if name in takes_part else ()
        yield Node(
            agent_key(name),
            "agent" if about else "undeclared",
            short_label(name, NAME_LENGTH),
            about.agent_type if about else "not declared",
            (*([description] if description else ()), *notes_of(spec, name), *made),
        )


def _unconsumed_types(board: Board, agent: BoardAgent) -> Iterator[str]:
    """Yield the published types that no other agent consumes, which no edge shows."""
    wanted = {name for other in board.agents for one in other.consumes for name in one.types}
    for type_ in dict.fromkeys(publication.type for publication in agent.publishes):
        if type_ not in wanted:
            yield short_label(f"publishes {type_}")


def _waking_edges(board: Board, agent: BoardAgent) -> Iterator[Edge]:
    if agent.schedule:
        words = _schedule_words(agent.schedule)
        yield Edge(_clock_key(agent.agent), agent_key(agent.agent), "start", words)
    for subscription in agent.consumes:
        for type_, count in Counter(subscription.types).items():
            words = short_label(
                ", ".join([_count_words(type_, count), *_gate_words(subscription, type_)])
            )
            for source in _sources(board, agent, subscription, type_):
                yield Edge(source, agent_key(agent.agent), "artifact", words)


def _sources(
    board: Board, agent: BoardAgent, subscription: Subscription, type_: str
) -> Iterator[str]:
    """Yield where artifacts of a type come from; from outside where no agent publishes them."""
    makers = [
        (other.agent, one) for other in board.agents for one in other.publishes if one.type == type_
    ]
    wanted = subscription.from_agents
    if (
        subscription.mode == "direct"
        or not makers
        or any(name.startswith(_PERSON) for name in wanted)
    ):
        yield START_KEY
    if subscription.mode == "direct":
        return  # it is given to the agent directly
    for name in dict.fromkeys(name for name, one in makers if _sees(agent, one)):
        own = name == agent.agent and agent.prevent_self_trigger
        if not own and (not wanted or name in wanted):
            yield agent_key(name)


def _sees(agent: BoardAgent, publication: Publication) -> bool:
    """Return whether the visibility policy may let an agent see a publication."""
    if isinstance(publication.visibility, str):
        return True
    seen = audience(publication.visibility, created_at=0, tenant="")
    reader = Identity(agent.agent, frozenset(agent.labels), seen.names[0] if seen.names else "")
    return may_see(seen._replace(visible_at=0), reader, 0)


def _count_words(type_: str, count: int) -> str:
    name = short_label(type_, NAME_LENGTH)
    return f"{count} x {name}" if count > 1 else name


def _gate_words(subscription: Subscription, type_: str) -> Iterator[str]:
    """Yield the further conditions for an artifact to wake its agent, in words."""
    if subscription.mode == "direct":
        yield "given to it"
    if subscription.where:
        yield f"if {subscription.where}"
    if subscription.tags:
        yield f"tagged {' or '.join(subscription.tags)}"
    others = [name for name in dict.fromkeys(subscription.types) if name != type_]
    if subscription.join:
        yield _join_words(subscription.join, others or list(subscription.types[:1]))
    elif others:
        yield f"with {' and '.join(others)}"
    if subscription.batch:
        size = f"{subscription.batch.size} at once" if subscription.batch.size else "as they come"
        seconds = subscription.batch.timeout_seconds
        yield f"{size}, or after {seconds:g} s" if seconds else size
    if subscription.activation:
        yield f"once {subscription.activation}"
    if subscription.scope != "correlation":
        yield "of the whole board" if subscription.scope == "all" else "of one partition"


def _join_words(join: Join, others: list[str]) -> str:
    by = join.by if isinstance(join.by, str) else join.function
    words = f"joined with {' and '.join(others)}"
    words += f" by {by}" if by else ""
    if join.within_seconds is not None:
        words += f" within {join.within_seconds:g} s"
    return words


def _schedule_words(schedule: Schedule) -> str:
    if schedule.every_seconds is not None:
        return f"every {schedule.every_seconds:g} s"
    if schedule.daily is not None:
        return f"daily at {schedule.daily} UTC"
    if schedule.at is not None:
        return f"at {schedule.at.isoformat()}"
    return short_label(f"cron {schedule.cron or ''}")
