"""Calls the code of a board: engines, and the components around them and around publishing."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from weft.context.similarity import NO_EMBEDDINGS, text_of
from weft.context.slices import AgentInfo, Envelope, Item, utc
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import (
    JsonDraft,
    Unpublishable,
    fulfils,
    policy_json,
    review_drafts,
    undeclared,
)
from weft.engine.board.rules import SubscriptionRules, test_of
from weft.engine.board.turn import inputs_of, spec_of
from weft.engine.board.visibility import Identity, may_see, stored_audience
from weft.engine.events.kinds import PUBLIC
from weft.errors import RetrievalError, ToolError
from weft.findings import Json
from weft.runtime.board.code import payload_for
from weft.runtime.board.evaluation import (
    CONTINUE,
    EvalContext,
    EvalInputs,
    EvalResult,
    Output,
    UnknownArtifactType,
    Verdict,
    drafts_of,
)
from weft.runtime.board.reading import owners_of_run, read_envelope, reader_for
from weft.runtime.linked_objects import display_name
from weft.runtime.tools.code_call import CodeCall
from weft.runtime.variables.json_values import own_copy, plain_json

_log: Final = logging.getLogger("weft.runtime")


def eval_context(
    call: CodeCall,
    inputs: Sequence[Envelope],
    state: dict[str, Any],
    items: Iterable[Item] = (),
    served: set[str] | None = None,
) -> EvalContext:
    """Return the EvalContext that the code of an agent receives besides its inputs."""
    agent, app = call.active.agent, call.state.app
    now = call.ports.clock.now()
    rules = rules_of(call.workflow.compiled)
    reader = reader_for(
        call.ports.store,
        app=app,
        board=rules.name,
        reader=Identity(agent, rules.agents[agent].labels, app),
        owners=owners_of_run(call.state),
        now=now,
        served=served,
    )
    declared = next((part for part in call.workflow.spec.agents if part.agent_name == agent), None)
    labels = spec_of(call.workflow.compiled, agent).labels
    return EvalContext(
        agent=AgentInfo(agent, declared.description if declared else "", labels),
        run=call.state.run,
        correlation_id=call.state.board.correlation if call.state.board else "",
        key=call.call.key,
        now=utc(now),
        board=reader,
        inputs=EvalInputs(tuple(inputs), state),
        state=state,
        items=tuple(items),
        agent_context_provider=call.workflow.board_code.contexts[agent],
        variables=call.variables,
    )


def plain(value: dict[str, Any]) -> dict[str, Json]:
    """Return a value from user code as JSON; raises ValueError if that is impossible."""
    return cast("dict[str, Json]", plain_json(value))


# -- engines, and hooks around publishing


async def call_engine(call: CodeCall, point: str) -> Json:
    """Call the code of a board at a hook point, and return the content of its event."""
    if point == "engine":
        return cast("Json", await _evaluate(call))
    if point == "publish":
        return cast("Json", await _publish(call))
    state = _state_of(call)
    ctx = eval_context(call, envelopes(inputs_of(call.active), call), state, _items(call))
    agent = call.active.agent
    if point == "post_publish":
        made = envelopes(call.active.drafts or [], call)
        for hook in call.workflow.board_code.hooks_of(agent, "post_publish"):
            await call.invoke(hook.name, hook.call, ctx, made)
        return None
    for hook in call.workflow.board_code.hooks_of(agent, "error"):
        await call.invoke(hook.name, hook.call, ctx, ToolError(call.active.error))
    return None


def _state_of(call: CodeCall) -> dict[str, Any]:
    return dict(
        cast("Mapping[str, Any]", own_copy((call.active.board_input or {}).get("state") or {}))
    )


def _items(call: CodeCall) -> list[Item]:
    """Return the context slice of the current engine."""
    fetched = cast("Mapping[str, Any]", call.active.board_input or {})
    engines: list[int] = fetched.get("engines") or []
    slices: list[dict[str, Any]] = fetched.get("slices") or []
    if call.active.engine_index >= len(engines):
        return []
    return cast("list[Item]", own_copy(slices[engines[call.active.engine_index]]["items"]))


async def _evaluate(call: CodeCall) -> dict[str, Json]:
    agent, at = call.active.agent, call.active.engine_index
    function = call.workflow.board_code.engines[agent, at]
    state = _state_of(call)
    inputs = envelopes(inputs_of(call.active), call)
    name = display_name(call.call.name, function)
    evaluate = getattr(function, "evaluate", None)
    if evaluate is None and (agent, at) in call.workflow.board_code.alone:
        returned = await call.invoke(name, function, EvalInputs(inputs, state))
    else:
        ctx = eval_context(call, inputs, state, _items(call))
        if evaluate is not None:
            returned = await call.invoke(name, evaluate, ctx, ctx.inputs)
        else:
            returned = await call.invoke(name, function, ctx.inputs, ctx)
    rules = rules_of(call.workflow.compiled).agents[agent]
    try:
        drafts, added = drafts_of(returned, call.workflow.types, rules.publishes)
    except UnknownArtifactType as error:
        _log.warning(undeclared(agent, error.type))
        raise ToolError(undeclared(agent, error.type)) from error
    if at == len(rules.engines) - 1:  # Earlier engines may return any type.
        for type_ in {str(draft["type"]) for draft in drafts}.difference(rules.publishes):
            _log.warning(undeclared(agent, type_))
    state.update(added)
    return plain({"artifacts": drafts, "state": state})


async def _publish(call: CodeCall) -> list[JsonDraft]:
    """Choose the best drafts, pass them to components and functions, and validate the rest."""
    agent = spec_of(call.workflow.compiled, call.active.agent)
    drafts = await _choose_best(call)
    drafts = await _run_post_evaluate(call, drafts)
    functions = {
        name
        for publication in agent.publishes
        for name in (publication.where, publication.validate_, publication.visibility)
        if isinstance(name, str) and _is_function(name)
    }
    answers = {name: await _ask_function(call, name, drafts) for name in functions}
    try:
        passed = review_drafts(agent, drafts, answers)
    except Unpublishable as error:
        raise ToolError(str(error)) from error
    return [await consult_components(call, call.active.agent, draft) for draft in passed]


def _is_function(text: str) -> bool:
    test = test_of(text)
    return test is not None and bool(test.function)


async def _choose_best(call: CodeCall) -> list[JsonDraft]:
    candidates = cast("Sequence[list[JsonDraft]]", call.active.candidates)
    best_of = spec_of(call.workflow.compiled, call.active.agent).best_of
    if best_of is None:
        return list(candidates[-1])
    score = call.workflow.board_code.objects[best_of.score]
    scores: list[float] = []
    for candidate in candidates:
        value = await call.invoke(best_of.score, score, envelopes(candidate, call))
        try:
            scores.append(float(value))
        except (TypeError, ValueError):
            raise ToolError(f"{best_of.score} returned {value!r}, which is not a number") from None
    return list(candidates[scores.index(max(scores))])


async def _run_post_evaluate(call: CodeCall, drafts: list[JsonDraft]) -> list[JsonDraft]:
    agent = call.active.agent
    publishes = rules_of(call.workflow.compiled).agents[agent].publishes
    for hook in call.workflow.board_code.hooks_of(agent, "post_evaluate"):
        inputs = envelopes(inputs_of(call.active), call)
        ctx = eval_context(call, inputs, _state_of(call), _items(call))
        result = EvalResult([_as_output(draft, call) for draft in drafts])
        given = await call.invoke(hook.name, hook.call, ctx, result)
        if given is not None:
            drafts, _ = drafts_of(given, call.workflow.types, publishes)
    return drafts


def _as_output(draft: JsonDraft, call: CodeCall) -> Output:
    (envelope,) = envelopes([draft], call)
    return Output(envelope, envelope.tags, envelope.visibility, envelope.partition_key)


async def _ask_function(call: CodeCall, name: str, drafts: Sequence[JsonDraft]) -> list[Json]:
    function = call.workflow.board_code.objects[name]
    answers: list[Json] = []
    for draft in drafts:
        given = await call.invoke(name, function, _payload(function, draft))
        answers.append(policy_json(given) if hasattr(given, "kind") else plain_json(given))
    return answers


async def consult_components(call: CodeCall, agent: str, draft: JsonDraft) -> JsonDraft:
    """Pass an artifact to components before it is published, and find the subscriptions it matches.

    Only subscriptions with a function or a comparison of meanings are decided here.
    """
    for hook in call.workflow.board_code.hooks_of(agent, "artifact_published"):
        (envelope,) = envelopes([draft], call)
        given = await call.invoke(hook.name, hook.call, envelope)
        if isinstance(given, Verdict) and given.kind == "block":
            return {**draft, "blocked": given.reason or f"by {hook.name}"}
        if given is None or given == CONTINUE:
            continue
        changed, _ = drafts_of(given, call.workflow.types, ())
        if len(changed) != 1 or changed[0]["type"] != draft["type"]:
            raise ToolError(f"{hook.name} returns another {draft['type']}, BLOCK or None")
        draft = {**draft, **changed[0]}
    verdicts: dict[str, Json] = {}
    keys: dict[str, Json] = {}
    for subscription in _visible_subscriptions(call, draft):
        if subscription.asks_outside:
            verdicts[subscription.name] = await _subscription_wants(call, subscription, draft)
        if subscription.join is not None and subscription.join.function:
            key = await _call_predicate(call, subscription.join.function, draft, raw=True)
            if key is not None:
                keys[subscription.name] = str(key)
    return {**draft, "verdicts": verdicts, "keys": keys}


def _visible_subscriptions(call: CodeCall, draft: JsonDraft) -> Iterator[SubscriptionRules]:
    """Yield the subscriptions to a type whose agents may see the artifact."""
    rules, policy = rules_of(call.workflow.compiled), draft.get("visibility", PUBLIC)
    seen = stored_audience(policy, created_at=0, tenant=call.state.app)._replace(visible_at=0)
    for subscription in rules.by_type.get(str(draft["type"]), ()):
        if may_see(seen, Identity(subscription.agent, subscription.labels, call.state.app), 0):
            yield subscription


async def _subscription_wants(
    call: CodeCall, rules: SubscriptionRules, draft: JsonDraft
) -> bool | str:
    """Return whether a subscription wants an artifact; the text of the error if that is unknown."""
    held = fulfils(rules, draft["payload"])
    if held is True and rules.where and rules.where.function:
        held = cast("bool | str", await _call_predicate(call, rules.where.function, draft))
    if held is not True or not rules.semantic_match:
        return held
    if call.ports.similarity is None:
        return NO_EMBEDDINGS
    try:
        text = text_of(draft["payload"])
        (score,) = await call.ports.similarity.of(rules.semantic_match, [text])
    except RetrievalError as error:
        return f"semantic_match could not be evaluated: {error}"
    return score >= rules.threshold


async def _call_predicate(
    call: CodeCall, name: str, draft: JsonDraft, *, raw: bool = False
) -> Json:
    """Call a function with a payload; return the text of the error if it raises."""
    try:
        function = call.workflow.board_code.objects[name]
        given = await call.invoke(name, function, _payload(function, draft))
    except ToolError as error:
        return None if raw else str(error)
    return cast("Json", given) if raw else bool(given)


def _payload(function: Callable[..., Any], draft: JsonDraft) -> object:
    try:
        return payload_for(function, own_copy(draft["payload"]))
    except ValueError as error:
        raise ToolError(f"the function cannot read the payload: {error}") from error


def envelopes(drafts: Sequence[JsonDraft], call: CodeCall) -> tuple[Envelope, ...]:
    """Return drafts as the Envelopes that user code receives."""
    now = call.ports.clock.now()
    return tuple(read_envelope(draft, now) for draft in drafts)
