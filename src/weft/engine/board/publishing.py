"""Publishing: artifacts, the subscriptions that want each, and stable names for both."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from pydantic import TypeAdapter
from pydantic_core import to_json

from weft.engine.board.rules import BoardRules, SubscriptionRules, holds, test_of
from weft.engine.board.state import Artifact, JsonDraft
from weft.engine.board.visibility import audience, may_see
from weft.engine.events import ArtifactPublished
from weft.engine.variables.triggers import dig
from weft.findings import Json
from weft.spec.board import PUBLIC, BoardAgent, Publication, Visibility

#: Whether subscriptions want an artifact, where code or a similarity search decides; a text says
#: why that failed.
Verdicts = Mapping[str, bool | str]

#: Said of an artifact that cannot be joined.
NO_KEY: Final = "it has no key to be joined by"

VISIBILITY: Final[TypeAdapter[Visibility]] = TypeAdapter(Visibility)


class Draft(NamedTuple):
    """An artifact that is about to be published."""

    type: str
    payload: Json
    by: str
    tags: tuple[str, ...] = ()
    partition: str = ""
    visibility: Visibility = PUBLIC
    #: What functions of the package say: who wants it, and the keys it is joined by.
    verdicts: Verdicts = MappingProxyType({})
    keys: Mapping[str, str] = MappingProxyType({})
    direct: str = ""
    #: What it is called, once that is known.
    id: str = ""


def artifact_event(board: BoardRules, tenant: str, draft: Draft) -> ArtifactPublished:
    """Return the event of an artifact, with the subscriptions that want it."""
    seen = audience(draft.visibility, created_at=0, tenant=tenant)
    wakes: dict[str, str] = {}
    letters: dict[str, str] = {}
    faults: dict[str, str] = {}
    seen_at_once = seen._replace(visible_at=0)
    counts = tuple(
        subscription.name
        for subscription in board.subscriptions.values()
        if subscription.activation is not None
        and may_see(seen_at_once, board.identity(subscription.agent, tenant), 0)
    )
    for rules in _concerned(board, draft):
        # An agent that may not see it is not woken, and never learns that it exists.
        if not may_see(seen_at_once, board.identity(rules.agent, tenant), 0):
            continue
        wanted = _wanted(rules, draft)
        if isinstance(wanted, str):
            faults[rules.name] = wanted
        elif wanted:
            _address(board, rules, draft, wakes, letters, faults)
    return ArtifactPublished(
        type=draft.type,
        payload=draft.payload,
        by=draft.by,
        id=draft.id,
        tags=draft.tags,
        partition=draft.partition,
        visibility=policy_json(draft.visibility),
        delay=seen.visible_at,
        wakes=wakes,
        letters=letters,
        counts=counts,
        faults=faults,
        direct=draft.direct,
    )


def _concerned(board: BoardRules, draft: Draft) -> Iterator[SubscriptionRules]:
    """Yield the subscriptions to a type that an artifact may wake at all."""
    for rules in board.by_type.get(draft.type, ()):
        if draft.direct:
            if rules.agent == draft.direct and rules.mode != "events":
                yield rules
        elif rules.mode != "direct" and _fits(board, rules, draft):
            yield rules


def _fits(board: BoardRules, rules: SubscriptionRules, draft: Draft) -> bool:
    own = draft.by == rules.agent and not board.agents[rules.agent].self_trigger
    tagged = not rules.tags or not rules.tags.isdisjoint(draft.tags)
    return not own and tagged and (not rules.from_agents or draft.by in rules.from_agents)


def _wanted(rules: SubscriptionRules, draft: Draft) -> bool | str:
    held = fulfils(rules, draft.payload)
    if held is not True or not rules.asks_outside:
        return held
    asked = rules.where.function if rules.where and rules.where.function else "its nearness"
    return draft.verdicts.get(rules.name, f"{asked} was not asked")


def fulfils(rules: SubscriptionRules, payload: Json) -> bool | str:
    """Tell whether a payload fulfils the condition of a subscription, where that has one."""
    if rules.where is None or rules.where.condition is None:
        return True
    return holds(rules.where.condition, payload)


def _address(
    board: BoardRules,
    rules: SubscriptionRules,
    draft: Draft,
    wakes: dict[str, str],
    letters: dict[str, str],
    faults: dict[str, str],
) -> None:
    """Add a wanted artifact: to this run, or to the run that collects across correlations."""
    key = "" if rules.join is None or draft.direct else _key(rules, draft)
    if key is None:
        faults[rules.name] = NO_KEY
    elif rules.scope == "correlation" or draft.direct:
        wakes[rules.name] = key
    else:
        wakes[rules.name] = key
        part = f"~{draft.partition}" if rules.scope == "partition" else ""
        letters[f"{board.name}~{rules.name}{part}"] = rules.name


def _key(rules: SubscriptionRules, draft: Draft) -> str | None:
    if rules.name in draft.keys:
        return draft.keys[rules.name]
    by = rules.join.by if rules.join else None
    field = by.get(draft.type) if isinstance(by, dict) else by
    value = None if field is None else dig(draft.payload, tuple(field.split(".")))
    return None if value is None or isinstance(value, list | dict) else json.dumps(value)


class Unpublishable(Exception):
    """The result of an agent cannot be published."""


#: What functions say of the drafts of a result, by function, one answer for each draft.
Answers = Mapping[str, Sequence[Json]]


def parse_output(agent: BoardAgent, value: Json) -> list[JsonDraft]:
    """Return a reply that fits `output_schema` as drafts."""
    if len(agent.publishes) == 1 and agent.publishes[0].fan_out == 1:
        return [{"type": agent.publishes[0].type, "payload": value}]
    found = cast("dict[str, Json]", value)
    drafts: list[JsonDraft] = []
    for publication in agent.publishes:
        of_type = found[publication.type]
        several = cast("list[Json]", of_type) if publication.fan_out > 1 else [of_type]
        drafts += [{"type": publication.type, "payload": payload} for payload in several]
    return drafts


def output_schema(agent: BoardAgent, schemas: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of what a model replies: one artifact, or several by type."""
    if len(agent.publishes) == 1 and agent.publishes[0].fan_out == 1:
        return schemas[agent.publishes[0].type]
    return {
        "type": "object",
        "properties": {
            publication.type: _several(publication, schemas[publication.type])
            for publication in agent.publishes
        },
        "required": [publication.type for publication in agent.publishes],
        "additionalProperties": False,
    }


def _several(publication: Publication, schema: dict[str, Any]) -> dict[str, Any]:
    if publication.fan_out == 1:
        return schema
    return {
        "type": "array",
        "items": schema,
        "minItems": publication.fan_out,
        "maxItems": publication.fan_out,
    }


def undeclared(agent: str, type_: str) -> str:
    """Return the message for an artifact of a type that its agent does not declare."""
    return f"agent {agent} published {type_}, which it does not declare: add .publishes({type_})"


def review_drafts(
    agent: BoardAgent, drafts: Sequence[JsonDraft], answers: Answers
) -> list[JsonDraft]:
    """Return the drafts that are published, as the agent's publications say.

    Raises Unpublishable if one is not declared, not valid, or cannot be judged.
    """
    declared = {each_publication.type: each_publication for each_publication in agent.publishes}
    counts = Counter(str(each_draft["type"]) for each_draft in drafts)
    for type_, count in counts.items():
        if type_ not in declared:
            raise Unpublishable(undeclared(agent.agent, type_))
        if count > declared[type_].fan_out:
            most = declared[type_].fan_out
            raise Unpublishable(
                f"{agent.agent} gave {count} artifacts of the type {type_}; fan_out is {most}"
            )
    passed: list[JsonDraft] = []
    for index, draft in enumerate(drafts):
        publication = declared[str(draft["type"])]
        if not _passes("where", publication.where, draft, index, answers):
            continue
        if not _passes("validate", publication.validate_, draft, index, answers):
            told = f"does not fulfil {publication.validate_}"
            raise Unpublishable(f"an artifact of the type {publication.type} {told}")
        passed.append(_completed(publication, draft, index, answers))
    return passed


def _passes(what: str, text: str | None, draft: JsonDraft, index: int, answers: Answers) -> bool:
    test = test_of(text)
    if test is None:
        return True
    if test.condition is None:
        return bool(answers[test.function][index])
    answer = holds(test.condition, draft["payload"])
    if isinstance(answer, str):
        raise Unpublishable(f"{what} of the type {draft['type']} cannot be answered: {answer}")
    return answer


def _completed(
    publication: Publication, draft: JsonDraft, index: int, answers: Answers
) -> JsonDraft:
    own = cast("list[Json]", draft.get("tags") or [])
    visibility = draft.get("visibility")
    if visibility is None:
        fixed = publication.visibility
        visibility = answers[fixed][index] if isinstance(fixed, str) else policy_json(fixed)
    return {**draft, "tags": [*publication.tags, *own], "visibility": visibility}


def policy_json(visibility: Visibility) -> dict[str, Json]:
    """Return a policy as JSON."""
    return VISIBILITY.dump_python(visibility, mode="json")


def read_draft(
    draft: Mapping[str, Json], *, by: str, partition: str = "", direct: str = ""
) -> Draft:
    """Return a draft from JSON. Raises ValueError if its visibility is malformed."""
    given: Any = draft
    return Draft(
        type=given["type"],
        payload=given["payload"],
        by=by,
        tags=tuple(dict.fromkeys(given.get("tags") or ())),
        partition=given.get("partition") or partition,
        visibility=VISIBILITY.validate_python(given.get("visibility", {"kind": "public"})),
        verdicts=given.get("verdicts") or {},
        keys=given.get("keys") or {},
        direct=direct,
        id=given.get("id") or "",
    )


# -- names


#: 128 bits: no two things on all boards get the same name by chance.
_BYTES: Final = 16


def activation_name(
    correlation: str, subscription: str, inputs: Iterable[Artifact], tries: int = 0
) -> str:
    """Return the name of a turn, made from its inputs and the number of deferrals.

    A delivery wakes an agent once, so no other activation of the run has the name. Where artifacts
    are collected beyond correlations, an id may be that of one in each of several.
    """
    woken_by: list[Json] = [[artifact.correlation, artifact.id] for artifact in inputs]
    return _name("activation", correlation, subscription, woken_by, tries)


def product_name(activation: str, correlation: str, visibility: Json, place: int) -> str:
    """Return the id of an artifact that a turn publishes.

    `place` is its place among those of the same visibility: whoever may not see the others of them
    does not see this one either. A fork has a correlation of its own: what an activation publishes
    when it is taken anew there is another artifact.
    """
    return _name("product", activation, correlation, visibility, place)


def tick_name(correlation: str, iteration: int) -> str:
    """Return the id of the artifact by which a schedule wakes its agent."""
    return _name("tick", correlation, iteration)


def timer_name(what: str, seq: int) -> str:
    """Return the id of a timer that an event sets. Agents never see it.

    Those of one time fire in the order of their names as texts. With numbers of one length that is
    the order they were set in, however many events there were before.
    """
    return f"{what}:{seq:012}"


def _name(*parts: Json) -> str:
    return blake2b(to_json(parts), digest_size=_BYTES).hexdigest()
