"""The rules of a board, computed once for all runs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, cast

from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import OBJECT_REF
from weft.spec.board import TICK, Batch, Board, BoardAgent, Component, Join, Schedule, Subscription
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
from weft.spec.providers import EmptyProvider, Provider, milliseconds

#: The hooks that are called before an agent works, and those that see what is about to be
#: published.
BEFORE_HOOKS: Final = ("before_schedule", "pre_consume", "pre_evaluate")
PUBLISH_HOOKS: Final = ("post_evaluate", "artifact_published")

#: How near an artifact must be to a description by default.
NEAR: Final = 0.5


@dataclass(frozen=True, slots=True)
class Test:
    """A condition over a payload, or the function that decides instead."""

    condition: Condition | None = None
    function: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionRules:
    """What wakes an agent."""

    name: str
    agent: str
    #: The types in the order the agent gets them, and how many of each.
    types: tuple[str, ...]
    needed: Mapping[str, int]
    where: Test | None
    #: What an artifact must be near to in meaning, and how near; empty: nothing.
    semantic_match: str
    threshold: float
    tags: frozenset[str]
    from_agents: frozenset[str]
    mode: str
    priority: int
    join: Join | None
    batch: Batch | None
    activation: Condition | None
    scope: str
    context: Provider | None
    labels: frozenset[str]
    #: Whether the engine cannot tell itself if an artifact is wanted.
    asks_outside: bool
    #: Whether one artifact is enough, and whether it wakes the agent at once.
    single: bool
    at_once: bool


@dataclass(frozen=True, slots=True)
class EngineRules:
    """What produces the artifacts: a model under its own role, or a function."""

    role: str
    function: str = ""


@dataclass(frozen=True, slots=True)
class BoardAgentRules:
    """How an agent takes part."""

    name: str
    labels: frozenset[str]
    engines: tuple[EngineRules, ...]
    publishes: tuple[str, ...]
    concurrency: int
    self_trigger: bool
    #: How often it works for one result.
    attempts: int
    schedule: Schedule | None
    #: Whether something is fetched or called before it works, before it publishes, and after.
    prepares: bool
    publishing_code: bool
    after_code: bool
    error_code: bool


@dataclass(frozen=True, slots=True)
class BoardRules:
    """A board, sorted for quick look-up."""

    name: str
    spec: Board
    agents: Mapping[str, BoardAgentRules]
    subscriptions: Mapping[str, SubscriptionRules]
    by_type: Mapping[str, tuple[SubscriptionRules, ...]]


def compile_board(name: str, board: Board) -> BoardRules:
    """Compile the rules of a board."""
    subscriptions = [
        _subscription(agent, index, subscription)
        for agent in board.agents
        for index, subscription in enumerate(_consumed(agent))
    ]
    by_type: dict[str, list[SubscriptionRules]] = {}
    for subscription in subscriptions:
        for type_ in subscription.needed:
            by_type.setdefault(type_, []).append(subscription)
    shared = _hooks(board.components)
    asked = _asked_in_code(board, subscriptions)
    return BoardRules(
        name=name,
        spec=board,
        agents={each_agent.agent: _agent(each_agent, shared, asked) for each_agent in board.agents},
        subscriptions={subscription.name: subscription for subscription in subscriptions},
        by_type={type_: tuple(found) for type_, found in by_type.items()},
    )


def _consumed(agent: BoardAgent) -> Sequence[Subscription]:
    """Return the subscriptions of an agent; the clock wakes it by one of its own."""
    ticks = [Subscription(types=(TICK,), mode="direct")] if agent.schedule else []
    return [*agent.consumes, *ticks]


def _subscription(agent: BoardAgent, index: int, subscription: Subscription) -> SubscriptionRules:
    where = test_of(subscription.where)
    single = len(subscription.types) == 1
    return SubscriptionRules(
        name=f"{agent.agent}.{index}",
        agent=agent.agent,
        types=subscription.types,
        needed=Counter(subscription.types),
        where=where,
        semantic_match=subscription.semantic_match or "",
        threshold=NEAR if subscription.threshold is None else subscription.threshold,
        tags=frozenset(subscription.tags),
        from_agents=frozenset(subscription.from_agents),
        mode=subscription.mode,
        priority=subscription.priority,
        join=subscription.join,
        batch=subscription.batch,
        activation=parse_condition(subscription.activation) if subscription.activation else None,
        scope=subscription.scope,
        context=subscription.context,
        labels=frozenset(agent.labels),
        asks_outside=bool(subscription.semantic_match or (where and where.function)),
        single=single,
        at_once=single and subscription.join is None and subscription.batch is None,
    )


def _agent(agent: BoardAgent, shared: frozenset[str], asked: Iterable[str]) -> BoardAgentRules:
    own = _hooks(agent.components) | shared
    engines = [
        EngineRules(
            role_of(agent.agent, index), engine.function if engine.kind == "function" else ""
        )
        for index, engine in enumerate(agent.engines)
    ]
    contexts = [subscription.context for subscription in agent.consumes] + [
        engine.context for engine in agent.engines
    ]
    empty = isinstance(agent.context, EmptyProvider) and not any(contexts)
    return BoardAgentRules(
        name=agent.agent,
        labels=frozenset(agent.labels),
        engines=tuple(engines) or (EngineRules(agent.agent),),
        publishes=tuple(publication.type for publication in agent.publishes),
        concurrency=agent.max_concurrency,
        self_trigger=not agent.prevent_self_trigger,
        attempts=agent.best_of.n if agent.best_of else 1,
        schedule=agent.schedule,
        prepares=not empty or not own.isdisjoint(BEFORE_HOOKS),
        publishing_code=(
            agent.best_of is not None
            or not own.isdisjoint(PUBLISH_HOOKS)
            or any(
                _has_code(publication.where, publication.validate_, publication.visibility)
                for publication in agent.publishes
            )
            or not {publication.type for publication in agent.publishes}.isdisjoint(asked)
        ),
        after_code="post_publish" in own,
        error_code="error" in own,
    )


def role_of(agent: str, engine: int) -> str:
    """Return the role under which the model of an engine is asked."""
    return f"{agent}#{engine}" if engine else agent


def test_of(text: str | None) -> Test | None:
    """Return the test for a payload: a condition, or a function written as `module:name`."""
    if text is None:
        return None
    if OBJECT_REF.match(text):
        return Test(function=text)
    return Test(condition=parse_condition(text))


def holds(condition: Condition, payload: Json) -> bool | str:
    """Return whether a payload meets a condition, or why this is unknown."""
    if not isinstance(payload, dict):
        return "the payload has no fields"
    try:
        return evaluate(condition, cast("dict[str, Json]", payload))
    except ExpressionError as error:
        return str(error)


def _hooks(components: Iterable[Component]) -> frozenset[str]:
    return frozenset(hook for component in components for hook in component.hooks)


def _has_code(*tests: object) -> bool:
    return any(isinstance(test, str) and OBJECT_REF.match(test) for test in tests)


def _asked_in_code(board: Board, subscriptions: Iterable[SubscriptionRules]) -> set[str]:
    """Return the types whose artifacts are passed to code or compared before they are published."""
    if "artifact_published" in _hooks(board.components):
        return set(types_of(board))
    return {
        type_
        for subscription in subscriptions
        if subscription.asks_outside or (subscription.join and subscription.join.function)
        for type_ in subscription.needed
    }


def types_of(board: Board) -> list[str]:
    """Return the names of all types of a board."""
    return [
        artifact if isinstance(artifact, str) else artifact.name for artifact in board.artifacts
    ]


# -- schedules; all times are UTC


#: The first and the last value of each field: minute, hour, day, month, weekday (0 and 7: Sunday).
_FIELDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_PART: Final = re.compile(r"(\*|\d{1,2}(?:-\d{1,2})?)(?:/(\d{1,3}))?\Z")

#: The next day that a cron expression names is within this many days; otherwise it never comes.
_LONGEST: Final = 366 * 8


def next_time(schedule: Schedule, now: int, planned: int | None = None) -> int | None:
    """Return when a schedule fires next, in milliseconds; None if never again.

    `planned` is when it should have fired last: a late time does not delay the next one, and missed
    times are not made up for.
    """
    start = now + round(schedule.delay_seconds * 1000) if planned is None else now
    if schedule.at is not None:
        return max(milliseconds(schedule.at), start) if planned is None else None
    if schedule.every_seconds is not None:
        every = max(1, round(schedule.every_seconds * 1000))
        return start if planned is None else planned + every * ((now - planned) // every + 1)
    time = datetime.fromtimestamp(start / 1000, UTC)
    if schedule.daily is not None:
        hour, minute = map(int, schedule.daily.split(":"))
        due = time.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return milliseconds(due if due > time else due + timedelta(days=1))
    due = next_cron(schedule.cron or "", time)
    return None if due is None else milliseconds(due)


def next_cron(text: str, after: datetime) -> datetime | None:
    """Return the first minute after a time that a cron expression names.

    >>> next_cron("30 6 * * 1", datetime(2026, 11, 17, tzinfo=UTC)).isoformat()
    '2026-11-23T06:30:00+00:00'
    """
    minutes, hours, days, months, weekdays = parse_cron(text)
    fields = text.split()
    either = fields[2] != "*" and fields[4] != "*"  # As cron has it: then one of them is enough.
    time = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    for _ in range(_LONGEST):
        on_day, on_weekday = time.day in days, time.isoweekday() % 7 in weekdays
        named = (on_day or on_weekday) if either else (on_day and on_weekday)
        if time.month in months and named:
            for hour in (hour_ for hour_ in sorted(hours) if hour_ >= time.hour):
                least = time.minute if hour == time.hour else 0
                minute = next((minute_ for minute_ in sorted(minutes) if minute_ >= least), None)
                if minute is not None:
                    return time.replace(hour=hour, minute=minute)
        time = time.replace(hour=0, minute=0) + timedelta(days=1)
    return None


@cache
def parse_cron(text: str) -> tuple[frozenset[int], ...]:
    """Return the values that each of the five fields allows. Raises ExpressionError."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ExpressionError(
            f"{text!r} has {len(fields)} fields, not five",
            hint="write minute, hour, day, month and weekday, as in 30 6 * * 1",
        )
    found = [_values(field, *limits) for field, limits in zip(fields, _FIELDS, strict=True)]
    found[4] = frozenset(entry % 7 for entry in found[4])
    return tuple(found)


def _values(field: str, least: int, most: int) -> frozenset[int]:
    values: set[int] = set()
    for part in field.split(","):
        match = _PART.match(part)
        if match is None:
            raise ExpressionError(
                f"{part!r} is not a field of a cron expression", hint="write *, 5, 1-5, */15 or 1,3"
            )
        span, step = match.group(1), int(match.group(2) or 1)
        first, _, last = span.partition("-")
        low = least if first == "*" else int(first)
        alone = most if first == "*" or match.group(2) else low
        high = int(last) if last else alone
        if not (least <= low <= high <= most and step):
            raise ExpressionError(
                f"{part!r} is out of range", hint=f"it goes from {least} to {most}"
            )
        values.update(range(low, high + 1, step))
    return frozenset(values)
