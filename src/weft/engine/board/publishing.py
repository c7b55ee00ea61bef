"""Publishing: artifacts, the subscriptions that want each, and stable names for both."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, cast

from pydantic_core import to_json

from weft.engine.board.rules import BoardRules, SubscriptionRules, holds, test_of
from weft.engine.board.state import Artifact, JsonDraft
from weft.engine.board.visibility import VISIBILITY, Identity, audience, may_see
from weft.engine.events import ArtifactPublished
from weft.engine.variables.triggers import dig
from weft.findings import Json
from weft.spec.board import PUBLIC, BoardAgent, Publication, Visibility

#: Whether subscriptions want an artifact, where code or a similarity search decides; a text says
#: why that failed.
Verdicts = Mapping[str, bool | str]

#: The error of an artifact that cannot be joined.
NO_KEY: Final = "it has no key to join by"


def artifact_event(
    board: BoardRules,
    tenant: str,
    draft: JsonDraft,
    *,
    by: str,
    partition: str = "",
    direct: str = "",
) -> ArtifactPublished:
    """Return the event of an artifact, with the subscriptions that want it.

    The draft also has what functions of the package say: `verdicts`, who wants it, and the `keys`
    it is joined by. Raises ValueError if its visibility is malformed.
    """
    given: Any = draft
    visibility = VISIBILITY.validate_python(given.get("visibility", PUBLIC))
    seen = audience(visibility, created_at=0, tenant=tenant)
    seen_at_once = seen._replace(visible_at=0)
    artifact = ArtifactPublished(
        type=given["type"],
        payload=given["payload"],
        by=by,
        id=given.get("id") or "",
        tags=tuple(dict.fromkeys(given.get("tags") or ())),
        partition=given.get("partition_key") or partition,
        visibility=policy_json(visibility),
        delay=seen.visible_at,
        counts=tuple(
            subscription.name
            for subscription in board.subscriptions.values()
            if subscription.activation is not None
            and may_see(seen_at_once, Identity(subscription.agent, subscription.labels, tenant), 0)
        ),
        direct=direct,
    )
    for rules in _find_subscriptions(board, artifact):
        # An agent that may not see it is not woken, and never learns that it exists.
        if not may_see(seen_at_once, Identity(rules.agent, rules.labels, tenant), 0):
            continue
        wanted = _wants(rules, artifact, given.get("verdicts") or {})
        if isinstance(wanted, str):
            artifact.errors[rules.name] = wanted
        elif wanted:
            _address(board, rules, artifact, given.get("keys") or {})
    return artifact


def _find_subscriptions(
    board: BoardRules, artifact: ArtifactPublished
) -> Iterator[SubscriptionRules]:
    """Yield the subscriptions to a type that an artifact may wake at all."""
    for rules in board.by_type.get(artifact.type, ()):
        if artifact.direct:
            if rules.agent == artifact.direct and rules.mode != "events":
                yield rules
        elif rules.mode != "direct" and _fits(board, rules, artifact):
            yield rules


def _fits(board: BoardRules, rules: SubscriptionRules, artifact: ArtifactPublished) -> bool:
    own = artifact.by == rules.agent and not board.agents[rules.agent].self_trigger
    tagged = not rules.tags or not rules.tags.isdisjoint(artifact.tags)
    return not own and tagged and (not rules.from_agents or artifact.by in rules.from_agents)


def _wants(rules: SubscriptionRules, artifact: ArtifactPublished, verdicts: Verdicts) -> bool | str:
    held = fulfils(rules, artifact.payload)
    if held is not True or not rules.asks_outside:
        return held
    asked = rules.where.function if rules.where and rules.where.function else "its nearness"
    return verdicts.get(rules.name, f"{asked} was not asked")


def fulfils(rules: SubscriptionRules, payload: Json) -> bool | str:
    """Return whether a payload fulfils the condition of a subscription, where that has one."""
    if rules.where is None or rules.where.condition is None:
        return True
    return holds(rules.where.condition, payload)


def _address(
    board: BoardRules,
    rules: SubscriptionRules,
    artifact: ArtifactPublished,
    keys: Mapping[str, str],
) -> None:
    """Address an artifact to this run, or to the run that collects across correlations."""
    key = "" if rules.join is None or artifact.direct else _key(rules, artifact, keys)
    if key is None:
        artifact.errors[rules.name] = NO_KEY
        return
    artifact.wakes[rules.name] = key
    if rules.scope != "correlation" and not artifact.direct:
        part = f"~{artifact.partition}" if rules.scope == "partition" else ""
        artifact.forwarded_to[f"{board.name}~{rules.name}{part}"] = rules.name


def _key(
    rules: SubscriptionRules, artifact: ArtifactPublished, keys: Mapping[str, str]
) -> str | None:
    if rules.name in keys:
        return keys[rules.name]
    by = rules.join.by if rules.join else None
    field = by.get(artifact.type) if isinstance(by, dict) else by
    value = None if field is None else dig(artifact.payload, tuple(field.split(".")))
    return None if value is None or isinstance(value, list | dict) else json.dumps(value)


class Unpublishable(Exception):
    """The result of an agent cannot be published."""


#: The answers of functions about the drafts of a result, by function, one for each draft.
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
    """Return the drafts to publish, completed as the agent's publications declare.

    Raises Unpublishable if one is not declared or not valid, or a condition cannot be evaluated.
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
        passed.append(_complete_draft(publication, draft, index, answers))
    return passed


def _passes(what: str, text: str | None, draft: JsonDraft, index: int, answers: Answers) -> bool:
    test = test_of(text) if text else None
    if test is None:
        return True
    if test.condition is None:
        return bool(answers[test.function][index])
    answer = holds(test.condition, draft["payload"])
    if isinstance(answer, str):
        raise Unpublishable(f"{what} of the type {draft['type']} cannot be answered: {answer}")
    return answer


def _complete_draft(
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


# -- names


#: 128 bits, so that names on all boards are unique.
_BYTES: Final = 16


def activation_name(
    correlation: str, subscription: str, inputs: Iterable[Artifact], tries: int = 0
) -> str:
    """Return the name of a turn, made from its inputs and the number of deferrals.

    A delivery wakes an agent once, so the name is unique in the run. The correlation of each input
    is part of the name, because several correlations may use the same artifact id.
    """
    woken_by: list[Json] = [[artifact.correlation, artifact.id] for artifact in inputs]
    return _name("activation", correlation, subscription, woken_by, tries)


def product_name(activation: str, correlation: str, visibility: Json, place: int) -> str:
    """Return the id of an artifact that a turn publishes.

    `place` counts only artifacts of the same visibility, so that a reader who may not see the
    others cannot learn from the id that they exist. A fork has its own correlation, so that its
    artifacts have other ids.
    """
    return _name("product", activation, correlation, visibility, place)


def tick_name(correlation: str, iteration: int) -> str:
    """Return the id of the artifact by which a schedule wakes its agent."""
    return _name("tick", correlation, iteration)


def timer_name(what: str, seq: int) -> str:
    """Return the id of a timer that an event sets. Agents never see it.

    Timers of the same time fire in the order of their names. The number has a fixed length, so that
    this is the order in which they were set.
    """
    return f"{what}:{seq:012}"


def _name(*parts: Json) -> str:
    return blake2b(to_json(parts), digest_size=_BYTES).hexdigest()
