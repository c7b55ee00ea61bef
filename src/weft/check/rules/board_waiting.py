"""Family BOARD, second part: what agents wait for, and what their providers give them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, cast

from weft.check.board_parts import (
    agents_of,
    components,
    lost_in,
    providers,
    schemas,
    subscriptions,
    tested,
)
from weft.check.declarations import places_of
from weft.check.rules.conditions import activations
from weft.check.rules.references import Reference, unknown_field, unknown_name, unknown_names
from weft.check.spelling import listed
from weft.check.subject import Hit, Subject, rule
from weft.engine.board.rules import parse_cron
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.spec.board import Join, Schedule, Subscription
from weft.spec.conditions import names
from weft.spec.part import JsonMap
from weft.spec.providers import (
    FilterConfig,
    FilteredProvider,
    Provider,
    RedactingProvider,
    SemanticProvider,
    StateProvider,
    SummaryProvider,
)
from weft.spec.templates import references

#: The ways to say when a schedule wakes its agent.
_WHEN: Final = ("every_seconds", "daily", "at", "cron")

#: The hooks that may fill the state before a provider reads it.
_FILLING: Final = frozenset({"before_schedule", "pre_consume"})


@rule("COND002", "board", "models")
def tested_field_exists(subject: Subject) -> Iterator[Hit]:
    for placed in tested(subject):
        if not isinstance(placed.condition, ExpressionError):
            for name in names(placed.condition):
                offset = next(places_of(name, placed.text), 0)
                what = f'"{placed.path[-1]}" tests'
                yield from _fields(subject, placed.path, what, name, placed.types, offset)


@rule("NAME001", "board", "models")
def field_exists(subject: Subject) -> Iterator[Hit]:
    for path, agent, it in subscriptions(subject):
        by, what = it.join.by if it.join else None, f"a join of {agent.agent} uses"
        if isinstance(by, str):
            place, types = (*path, "join", "by"), tuple(dict.fromkeys(it.types))
            yield from _fields(subject, place, what, by, types)
        for type_, field in by.items() if isinstance(by, dict) else ():
            yield from _fields(subject, (*path, "join", "by", type_), what, field, (type_,))
    for path, agent, it in providers(subject):
        what = f"a template of {agent.agent} inserts"
        for type_, text in it.templates.items() if isinstance(it, SummaryProvider) else ():
            for found in references(text):
                place = (*path, "templates", type_)
                yield from _fields(subject, place, what, found.name, (type_,), found.offset)
        if isinstance(it, SemanticProvider) and it.query_field:
            # One of the types that wake the agent must have the field.
            consumed = dict.fromkeys(name for one in agent.consumes for name in one.types)
            place, what = (*path, "query_field"), f"a provider of {agent.agent} compares"
            hits = [
                list(_fields(subject, place, what, it.query_field, (name,))) for name in consumed
            ]
            yield from hits[0] if hits and all(hits) else ()


def _fields(
    subject: Subject, path: Path, what: str, field: str, types: tuple[str, ...], offset: int = 0
) -> Iterator[Hit]:
    for type_ in types:
        lost = lost_in(subject, type_, field)
        if lost:
            hit = unknown_field(path, what, lost, offset=offset)
            yield replace(hit, message=f"{hit.message} of {type_}")


@rule("BOARD015", "board")
def join_can_be_made(subject: Subject) -> Iterator[Hit]:
    for path, _, it in subscriptions(subject):
        fault = _join_fault(it, it.join) if it.join else None
        if fault:
            fact, *hint = fault
            yield Hit((*path, "join"), fact, hint=tuple(hint))


def _join_fault(subscription: Subscription, join: Join) -> tuple[str, str] | None:
    if len(subscription.types) == 1:
        return (
            f"there is nothing to join with {subscription.types[0]}",
            "name what is joined under types, or remove the join",
        )
    if (join.by is None) == (join.function is None):
        many = "no key" if join.by is None else "two keys"
        return f"the join has {many}", "write by or function, and not both"
    if isinstance(join.by, dict):
        lacking = [it for it in dict.fromkeys(subscription.types) if it not in join.by]
        if lacking:
            return f"the join has no key for {listed(lacking)}", "write one for each of the types"
    return None


@rule("BOARD016", "board")
def join_comes_to_an_end(subject: Subject) -> Iterator[Hit]:
    for path, agent, it in subscriptions(subject):
        if it.join and it.join.within_seconds is None and it.join.within_count is None:
            yield Hit(
                (*path, "join"),
                f"{agent.agent} waits forever for the other artifacts of a join",
                hint=("add within_seconds or within_count, after which it is given up",),
            )


@rule("BOARD017", "board")
def batch_comes_to_an_end(subject: Subject) -> Iterator[Hit]:
    for path, agent, it in subscriptions(subject):
        if it.batch and it.batch.size is None and it.batch.timeout_seconds is None:
            fact = f"the batch of {agent.agent} is never full"
            yield Hit((*path, "batch"), fact, hint=("add size, timeout_seconds or both",))


@rule("BOARD018", "board")
def schedule_can_be_kept(subject: Subject) -> Iterator[Hit]:
    for path, agent in agents_of(subject):
        if agent.schedule is not None:
            yield from _schedule((*path, "schedule"), agent.agent, agent.schedule)


def _schedule(path: Path, agent: str, schedule: Schedule) -> Iterator[Hit]:
    given = [name for name in _WHEN if getattr(schedule, name) is not None]
    if len(given) != 1:
        what = f"says {listed(given)}" if given else "does not say when"
        hint = f"write one of {', '.join(_WHEN)}"
        yield Hit(path, f"the schedule of {agent} {what}", hint=(hint,))
    if schedule.cron is not None:
        try:
            parse_cron(schedule.cron)
        except ExpressionError as error:
            fact = f"the schedule of {agent} is not valid: {error}"
            yield Hit((*path, "cron"), fact, hint=(error.hint,) if error.hint else ())


@rule("BOARD019", "board")
def schedule_and_batch_are_apart(subject: Subject) -> Iterator[Hit]:
    for path, agent in agents_of(subject):
        if agent.schedule is None:
            continue
        for index, it in enumerate(agent.consumes):
            if it.batch is not None:
                yield Hit(
                    (*path, "consumes", index, "batch"),
                    f"{agent.agent} has a schedule, and collects a batch as well",
                    hint=("let one agent collect and another keep the schedule",),
                )


@rule("COND002", "board")
def activation_counts_types(subject: Subject) -> Iterator[Hit]:
    for agent, _, placed in activations(subject):
        if isinstance(placed.condition, ExpressionError):
            continue
        yield from unknown_names(
            subject,
            (
                Reference(
                    placed.path,
                    "type",
                    name,
                    f"the activation of {agent} counts",
                    next(places_of(name, placed.text), 0),
                )
                for name in names(placed.condition)
            ),
        )


@rule("BOARD025", "board")
def activation_counts_a_correlation(subject: Subject) -> Iterator[Hit]:
    for agent, scope, placed in activations(subject):
        if scope != "correlation" and not isinstance(placed.condition, ExpressionError):
            yield Hit(
                placed.path,
                f"the activation of {agent} counts artifacts of one correlation, not of {scope}",
                hint=('remove "activation" or "scope"',),
            )


@rule("BOARD023", "board", "models")
def provider_has_an_effect(subject: Subject) -> Iterator[Hit]:
    keys = subject.once(_all_keys)
    for path, agent, it in providers(subject):
        fault = _idle(it)
        if fault:
            fact, hint = fault
            yield Hit(path, f"a provider of {agent.agent} {fact}", hint=(hint,))
        for index, name in enumerate(it.drop if isinstance(it, RedactingProvider) else ()):
            if keys and name not in keys:
                place, what = (*path, "drop", index), f"a provider of {agent.agent} drops"
                yield unknown_name(Reference(place, "", name, what), "field", keys, "name a field")


def _idle(provider: Provider) -> tuple[str, str] | None:
    """Say why a provider could be left out, or gives nothing at all, and what to do."""
    if isinstance(provider, RedactingProvider) and not (provider.drop or provider.transform):
        return "drops nothing", "name keys under drop or transform, or use the provider inside it"
    if isinstance(provider, FilteredProvider):
        filters = provider.filters
        if None not in (provider.limit, filters.limit) and provider.limit != filters.limit:
            return f"has two limits, of which {provider.limit} counts", "keep one of them"
    filtering = isinstance(provider, FilteredProvider | SemanticProvider)
    if filtering and _is_contradictory(provider.filters):
        return "returns nothing: its filters exclude each other", "correct since, until or tags"
    return None


def _is_contradictory(filters: FilterConfig) -> bool:
    never = filters.since and filters.until and filters.since >= filters.until
    excluded = set(filters.tags.exclude)
    included = set(filters.tags.include)
    all_gone = bool(included) and included <= excluded
    return bool(never or all_gone or excluded.intersection(filters.tags.all_of))


def _all_keys(subject: Subject) -> frozenset[str]:
    """Return the fields of all types, however deep; none where a type says nothing of its own."""
    found: set[str] = set()
    for schema in subject.once(schemas).values():
        own = set(_keys(schema))
        if not own:
            return frozenset()
        found |= own
    return frozenset(found)


def _keys(schema: JsonMap) -> Iterator[str]:
    waiting: list[Json] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            node = cast("dict[str, Json]", part)
            properties = node.get("properties")
            yield from cast("dict[str, Json]", properties) if isinstance(properties, dict) else ()
            waiting += node.values()
        elif isinstance(part, list):
            waiting += cast("list[Json]", part)


@rule("BOARD030", "board")
def one_query(subject: Subject) -> Iterator[Hit]:
    for path, agent, it in providers(subject):
        if isinstance(it, SemanticProvider) and None not in (it.query, it.query_field):
            fact = f"a provider of {agent.agent} has a query, and a query_field as well"
            yield Hit((*path, "query_field"), fact, hint=("keep one of them",))


@rule("BOARD024", "board")
def state_is_filled(subject: Subject) -> Iterator[Hit]:
    # Of a component without hooks, BOARD022 speaks.
    filling = [
        agent
        for _, agent, it in components(subject)
        if not it.hooks or not _FILLING.isdisjoint(it.hooks)
    ]
    for path, agent, it in providers(subject):
        if isinstance(it, StateProvider) and agent not in filling and None not in filling:
            yield Hit(
                path,
                f'a provider of {agent.agent} reads "{it.key}" of the state, which is never set',
                hint=(f"give {agent.agent} a component that sets it in pre_consume",),
            )
