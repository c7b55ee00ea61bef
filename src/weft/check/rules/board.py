"""Family BOARD: agents and types of a board, what agents wait for, and what they are shown."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, cast

from weft.check.answer_schema import root_of, schema_faults
from weft.check.board_parts import board_of, known_types, lost_in, providers, schemas
from weft.check.parts import owned, parts_of, placed_parts
from weft.check.rules.references import Reference, unknown_field, unknown_name, unknown_names
from weft.check.spelling import agent_meant, listed
from weft.check.subject import BOARD, FLOW, Hit, Subject, rule
from weft.check.texts import parsed_conditions, places_of
from weft.engine.board.rules import parse_cron
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import nearest
from weft.spec.agents import Agent, BoardIngredient
from weft.spec.board import (
    ArtifactType,
    Batch,
    BoardAgent,
    Component,
    Join,
    ModelEngine,
    Publication,
    Schedule,
    Subscription,
)
from weft.spec.conditions import names
from weft.spec.part import JsonMap, Part
from weft.spec.providers import (
    FilterConfig,
    FilteredContextProvider,
    Provider,
    RedactingProvider,
    SemanticContextProvider,
    StateDelegatingProvider,
    SummarisingProvider,
)
from weft.spec.templates import references

#: Settings of a workflow and of agents that only a conversation has; a flow may have the others.
_OF_WORKFLOW: Final = (
    "initial_agent", "parallel", "default_target", "orchestration_pattern", "initial_message",
    "initial_message_to_user", "max_turns", "human_in_the_loop", "initiated_by", "startup_mode",
    "visual_agents", "condition_profile", "llm_conditions",
)  # fmt: skip
_OF_AGENTS: Final = (
    "handoff_tools", "auto_tool_mode", "human_interaction", "max_consecutive_auto_reply",
)  # fmt: skip

#: The hooks that a component of the whole board may have.
_BOARD_HOOKS: Final = ("artifact_published", "before_schedule")


@rule("BOARD001", "board", "flow", "orchestrator", "handoffs", "agents", "registry", modes=BOARD)
def board_has_no_settings_of_conversations(subject: Subject) -> Iterator[Hit]:
    spec = subject.spec
    if spec.flow is not None:
        hint = "remove board.json or flow.json"
        yield Hit(("flow",), "the workflow has a flow, and a board as well", hint=(hint,))
    of_workflow, of_agents = (
        (*_OF_WORKFLOW, "trigger"),
        (*_OF_AGENTS, "structured_outputs_required"),
    )
    bound = [index for index, binding in enumerate(spec.registry) if binding.model]
    for path, name in (
        *_of_conversations(subject, of_workflow, of_agents),
        *((("registry", index), "the registry") for index in bound[:1]),
    ):
        fact = f"{name} is for a conversation, and this workflow is a board"
        hint = "remove it: on a board, artifacts say who works"
        yield Hit(path, fact, hint=(hint, "or remove board.json"))


@rule("FLOW001", "flow", "orchestrator", "handoffs", "agents", modes=FLOW)
def flow_has_no_settings_of_conversations(subject: Subject) -> Iterator[Hit]:
    for path, name in _of_conversations(subject, _OF_WORKFLOW, _OF_AGENTS):
        fact = f"{name} is for a conversation, and this workflow is a flow"
        hint = "remove it: in a flow, steps say who works"
        yield Hit(path, fact, hint=(hint, "or remove flow.json"))


def _of_conversations(
    subject: Subject, of_workflow: Iterable[str], of_agents: Iterable[str]
) -> Iterator[tuple[Path, str]]:
    """Yield the settings of conversations that are set, with their paths."""
    yield from _changed(subject.spec.orchestrator, of_workflow, ("orchestrator",))
    if subject.spec.handoffs:
        yield ("handoffs", 0), "handoffs"
    for index, agent in enumerate(subject.spec.agents):
        yield from _changed(agent, of_agents, ("agents", index))


def _changed(part: Part, names: Iterable[str], path: Path) -> Iterator[tuple[Path, str]]:
    for name in names:
        if getattr(part, name) != type(part).model_fields[name].default:
            yield (*path, name), name


@rule("NAME003", "board", "agents", modes=BOARD)
def agent_takes_part(subject: Subject) -> Iterator[Hit]:
    named = {agent_meant(subject, agent.agent) for agent in board_of(subject).agents}
    for index, agent in enumerate(subject.spec.agents):
        if agent.agent_name not in named:
            yield Hit(
                ("agents", index, "agent_name"),
                f"{agent.agent_name} is never used: it is not on the board",
                hint=("add it to board.json, or remove it",),
                severity="error",
            )


@rule("NAME003", "board")
def type_is_used(subject: Subject) -> Iterator[Hit]:
    known = known_types(subject)
    used = {name for _, wanted in parts_of(subject, Subscription) for name in wanted.types}
    used |= {publication.type for _, publication in parts_of(subject, Publication)}
    used |= {nearest(name, known) or name for name in used.difference(known)}
    for index, name in enumerate(known):
        if name not in used:
            fact = f"the artifact type {name} is never used: no agent publishes or consumes it"
            hint = 'add a subscription for it, or remove it from "artifacts"'
            yield Hit(("board", "artifacts", index), fact, hint=(hint,))


@rule("BOARD009", "board")
def schema_describes_an_object(subject: Subject) -> Iterator[Hit]:
    for at, artifact in parts_of(subject, ArtifactType):
        path = (*at, "schema")
        for fault in schema_faults(artifact.schema_):
            where = ".".join(map(str, fault.path)) or "it"
            fact = f"the schema of {artifact.name} cannot be used: {where} {fault.fact}"
            yield Hit((*path, *fault.path), fact, hint=(fault.hint,))
        whole = root_of(artifact.schema_)
        if whole is not None and not _is_object(whole):
            fact = f"the schema of {artifact.name} describes no object, and payloads are objects"
            yield Hit(path, fact, hint=('write {"type": "object", "properties": {...}}',))


def _is_object(schema: JsonMap) -> bool:
    if "type" in schema:
        return schema["type"] == "object"
    return not schema.keys().isdisjoint(("properties", "anyOf", "oneOf", "allOf"))


@rule("BOARD010", "board")
def something_wakes_it(subject: Subject) -> Iterator[Hit]:
    for path, board_agent in parts_of(subject, BoardAgent):
        if not board_agent.consumes and board_agent.schedule is None:
            fact = (
                f"nothing ever wakes {board_agent.agent}: it consumes nothing and has no schedule"
            )
            hint = "say under consumes what wakes it, or give it a schedule"
            yield Hit((*path, "agent"), fact, hint=(hint,))


@rule("BOARD022", "board")
def component_is_called(subject: Subject) -> Iterator[Hit]:
    for index, component in enumerate(board_of(subject).components):
        strange = [hook for hook in component.hooks if hook not in _BOARD_HOOKS]
        if strange:
            fact = (
                f"{component.component} is for the whole board, and {listed(strange)} for an agent"
            )
            hint = f"move it to an agent; the board calls {listed(_BOARD_HOOKS)}"
            yield Hit(("board", "components", index, "hooks"), fact, hint=(hint,))


@rule("BOARD026", "board")
def agent_does_not_wake_itself(subject: Subject) -> Iterator[Hit]:
    for path, agent, subscription in owned(subject, BoardAgent, Subscription):
        made = {one.type for one in agent.publishes}
        own = [name for name in dict.fromkeys(subscription.types) if name in made]
        others = subscription.mode == "direct" or (
            subscription.from_agents and agent.agent not in subscription.from_agents
        )
        if own and not others and not agent.prevent_self_trigger:
            yield Hit(
                (*path, "types"),
                f"{agent.agent} wakes itself: it publishes {listed(own)}, and consumes that",
                hint=(
                    "narrow where so that the loop ends; otherwise max_wakes_per_input ends it",
                    'or remove "prevent_self_trigger"',
                ),
            )


@rule("BOARD027", "board", "agents")
def model_is_told_what_to_do(subject: Subject) -> Iterator[Hit]:
    for path, board_agent in parts_of(subject, BoardAgent):
        agent = subject.agents.get(board_agent.agent)
        instructed = agent is None or agent.prompt_sections or agent.description.strip()
        if not instructed and _has_silent_model(board_agent):
            yield Hit(
                (*path, "agent"),
                f"the model of {board_agent.agent} has no instructions",
                hint=("write a prompt or a description in agents.json",),
            )


def _has_silent_model(agent: BoardAgent) -> bool:
    engines = agent.engines or (ModelEngine(),)
    return any(
        isinstance(engine, ModelEngine) and not engine.instructions.strip() for engine in engines
    )


@rule("BOARD028", "agents", "board")
def context_has_its_board(subject: Subject) -> Iterator[Hit]:
    if subject.spec.board is None:
        for path, agent, _ in owned(subject, Agent, BoardIngredient):
            fact = f'the context of {agent.agent_name} has the part "board" without a board'
            yield Hit(path, fact, hint=("remove this part, or write board.json",))


#: The hooks that may fill the state before a provider reads it.
_FILLING: Final = frozenset({"before_schedule", "pre_consume"})


@rule("COND002", "board", "models")
def tested_field_exists(subject: Subject) -> Iterator[Hit]:
    for placed, condition in parsed_conditions(subject, Subscription, Publication):
        for name in names(condition):
            offset = next(places_of(name, placed.text), 0)
            if placed.path[-1] == "activation":
                what = f"{placed.what} counts"
                reference = Reference(placed.path, "type", name, what, offset)
                yield from unknown_names(subject, [reference])
            else:
                what, types = f"{placed.what} tests", _types(placed.part)
                yield from _fields(subject, placed.path, what, name, types, offset)


def _types(part: Subscription | Publication) -> tuple[str, ...]:
    return (part.type,) if isinstance(part, Publication) else tuple(dict.fromkeys(part.types))


@rule("NAME001", "board", "models")
def field_exists(subject: Subject) -> Iterator[Hit]:
    for path, agent, subscription in owned(subject, BoardAgent, Subscription):
        by, what = subscription.join and subscription.join.by, f"a join of {agent.agent} uses"
        if isinstance(by, str):
            yield from _fields(subject, (*path, "join", "by"), what, by, _types(subscription))
        for type_, field in by.items() if isinstance(by, dict) else ():
            yield from _fields(subject, (*path, "join", "by", type_), what, field, (type_,))
    for path, agent, summary in owned(subject, BoardAgent, SummarisingProvider):
        what = f"a template of {agent.agent} inserts"
        for type_, text in summary.templates.items():
            for found in references(text):
                place = (*path, "templates", type_)
                yield from _fields(subject, place, what, found.name, (type_,), found.offset)
    for path, agent, semantic in owned(subject, BoardAgent, SemanticContextProvider):
        # One of the types that wake the agent must have the field.
        consumed = dict.fromkeys(name for one in agent.consumes for name in one.types)
        place, what = (*path, "query_field"), f"a provider of {agent.agent} compares"
        field = semantic.query_field or ""
        hits = [list(_fields(subject, place, what, field, (name,))) for name in consumed]
        yield from hits[0] if field and hits and all(hits) else ()


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
    for path, subscription in parts_of(subject, Subscription):
        by = subscription.join and subscription.join.by
        lacking = [name for name in dict.fromkeys(subscription.types) if name not in (by or ())]
        if subscription.join and len(subscription.types) == 1:
            fact = f"there is nothing to join with {subscription.types[0]}"
            hint = "name what is joined under types, or remove the join"
            yield Hit((*path, "join"), fact, hint=(hint,))
        elif isinstance(by, dict) and lacking:
            fact = f"the join has no key for {listed(lacking)}"
            yield Hit((*path, "join"), fact, hint=("write one for each of the types",))


@rule("BOARD016", "board")
def join_comes_to_an_end(subject: Subject) -> Iterator[Hit]:
    for path, agent, join in owned(subject, BoardAgent, Join):
        if join.within_seconds is None and join.within_count is None:
            yield Hit(
                path,
                f"{agent.agent} waits forever for the other artifacts of a join",
                hint=(
                    "add within_seconds or within_count, after which an incomplete join is dropped",
                ),
            )


@rule("BOARD018", "board")
def schedule_can_be_kept(subject: Subject) -> Iterator[Hit]:
    for path, agent, schedule in owned(subject, BoardAgent, Schedule):
        try:
            parse_cron(schedule.cron or "* * * * *")
        except ExpressionError as error:
            fact = f"the schedule of {agent.agent} is not valid: {error}"
            yield Hit((*path, "cron"), fact, hint=(error.hint,) if error.hint else ())


@rule("BOARD019", "board")
def schedule_and_batch_are_apart(subject: Subject) -> Iterator[Hit]:
    for path, agent, _ in owned(subject, BoardAgent, Batch):
        if agent.schedule is not None:
            fact = f"{agent.agent} has a schedule, and collects a batch as well"
            yield Hit(path, fact, hint=("let one agent collect and another keep the schedule",))


@rule("BOARD025", "board")
def activation_counts_a_correlation(subject: Subject) -> Iterator[Hit]:
    for placed, _ in parsed_conditions(subject, Subscription):
        scope = placed.part.scope
        if placed.path[-1] == "activation" and scope != "correlation":
            yield Hit(
                placed.path,
                f"{placed.what} counts artifacts of one correlation, not of {scope}",
                hint=('remove "activation" or "scope"',),
            )


@rule("BOARD023", "board", "models")
def provider_has_an_effect(subject: Subject) -> Iterator[Hit]:
    keys = subject.once(_all_keys)
    for path, agent, provider in providers(subject):
        fault = _idle(provider)
        if fault:
            fact, hint = fault
            yield Hit(path, f"a provider of {agent.agent} {fact}", hint=(hint,))
    for path, agent, redacting in owned(subject, BoardAgent, RedactingProvider):
        for index, name in enumerate(redacting.drop if keys else ()):
            if name not in keys:
                place, what = (*path, "drop", index), f"a provider of {agent.agent} drops"
                yield unknown_name(Reference(place, "", name, what), "field", keys, "name a field")


def _idle(provider: Provider) -> tuple[str, str] | None:
    """Return why a provider has no effect or returns nothing, and what to do."""
    if isinstance(provider, RedactingProvider) and not (provider.drop or provider.transform):
        return "drops nothing", "name keys under drop or transform, or use the provider inside it"
    if isinstance(provider, FilteredContextProvider):
        filters = provider.filters
        if None not in (provider.limit, filters.limit) and provider.limit != filters.limit:
            return f"has two limits, of which {provider.limit} counts", "keep one of them"
    filtering = isinstance(provider, FilteredContextProvider | SemanticContextProvider)
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
    """Return the fields of all types, nested ones included; none if a type has no schema."""
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


@rule("BOARD024", "board")
def state_is_filled(subject: Subject) -> Iterator[Hit]:
    filling = [
        placed.inside(BoardAgent)
        for placed in placed_parts(subject, Component)
        if not _FILLING.isdisjoint(placed.part.hooks)
    ]
    for path, agent, provider in owned(subject, BoardAgent, StateDelegatingProvider):
        if agent not in filling and None not in filling:
            yield Hit(
                path,
                f'a provider of {agent.agent} reads "{provider.key}" of the state,'
                " which is never set",
                hint=(f"give {agent.agent} a component that sets it in pre_consume",),
            )
