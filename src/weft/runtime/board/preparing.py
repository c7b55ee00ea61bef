"""Prepares an activation: components decide, context providers are called."""

import asyncio
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

from weft.context.providers import PROVIDER_SECONDS, name_of
from weft.context.slices import ContextProvider, ContextRequest, ContextSlice, Envelope, Item
from weft.context.user_code import call_user_code, describe_error
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import policy_json
from weft.engine.board.turn import inputs_of, spec_of
from weft.engine.board.visibility import Identity
from weft.engine.events.kinds import BoardInput
from weft.errors import ToolError, WeftError
from weft.ports.board import ArtifactQuery
from weft.runtime.board.calls import envelopes, eval_context, plain
from weft.runtime.board.code import LinkedHook
from weft.runtime.board.evaluation import (
    CONTINUE,
    EvalInputs,
    Verdict,
)
from weft.runtime.board.reading import owners_of_run
from weft.runtime.tools.code_call import CodeCall
from weft.runtime.variables.json_values import plain_json
from weft.spec.board import HookName
from weft.spec.providers import MAX_ITEMS, SelectingProvider, milliseconds


async def prepare_activation(call: CodeCall) -> tuple[BoardInput, str]:
    """Call components and providers before an agent works; return their results, or the error."""
    state: dict[str, Any] = {}
    inputs = envelopes(inputs_of(call.active), call)
    found: dict[str, Any] = {}
    try:
        verdict = await _ask_before_schedule(call, inputs, state)
        if verdict.kind != "continue":
            stopped = BoardInput(
                verdict=verdict.kind, seconds=verdict.seconds, detail=verdict.reason
            )
            return stopped, ""
        changed = await _run_input_hooks(call, "pre_consume", inputs, state)
        slices, engines = await _fetch_slices(call, changed, state)
        changed = await _run_input_hooks(call, "pre_evaluate", changed, state)
        if changed is not inputs:
            found["inputs"] = [_as_draft(artifact) for artifact in changed]
        if state:
            found["state"] = {k: v for k, v in state.items() if not isinstance(v, ContextSlice)}
        # The results of providers are plain JSON already, and most of the data.
        return cast("BoardInput", {**plain(found), "slices": slices, "engines": engines}), ""
    except _ProviderFailed as error:
        return {"slices": [error.record]}, str(error)
    except (WeftError, ValueError) as error:
        return {}, str(error)


class _ProviderFailed(ToolError):
    """A provider failed; `record` has its name and duration."""

    def __init__(self, message: str, record: dict[str, Any]) -> None:
        super().__init__(message)
        self.record = {**record, "error": message}


async def _ask_before_schedule(
    call: CodeCall, inputs: Sequence[Envelope], state: dict[str, Any]
) -> Verdict:
    for hook in call.workflow.board_code.hooks_of(call.active.agent, "before_schedule"):
        ctx = eval_context(call, inputs, state)
        given = await call.invoke(hook.name, hook.call, ctx, ctx.inputs)
        verdict = given if isinstance(given, Verdict) else _read_verdict(hook, given)
        if verdict.kind != "continue":
            return replace(verdict, reason=verdict.reason or f"by {hook.name}")
    return CONTINUE


def _read_verdict(hook: LinkedHook, given: object) -> Verdict:
    if given is None:
        return CONTINUE
    if given in ("continue", "skip", "defer", "block"):
        return Verdict(cast("Any", given))
    raise ToolError(f"{hook.name} returned {given!r}; return CONTINUE, SKIP, DEFER or BLOCK")


async def _run_input_hooks(
    call: CodeCall,
    hook: HookName,
    inputs: Sequence[Envelope],
    state: dict[str, Any],
) -> Sequence[Envelope]:
    for linked in call.workflow.board_code.hooks_of(call.active.agent, hook):
        ctx = eval_context(call, inputs, state)
        given = await call.invoke(linked.name, linked.call, ctx, ctx.inputs)
        if given is None:
            continue
        if isinstance(given, EvalInputs):
            given = given.artifacts
        if not isinstance(given, list | tuple) or not all(
            isinstance(one, Envelope) for one in cast("list[object]", given)
        ):
            raise ToolError(
                f"{linked.name} returned something other than inputs; return EvalInputs or None"
            )
        inputs = cast("Sequence[Envelope]", given)
    return inputs


async def _fetch_slices(
    call: CodeCall, inputs: Sequence[Envelope], state: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Call each needed provider once; also return the index of each engine's slice."""
    code, agent = call.workflow.board_code, call.active.agent
    count = len(rules_of(call.workflow.compiled).agents[agent].engines)
    own = code.subscription_contexts.get(call.active.step)
    wanted = [
        own or code.engine_contexts.get((agent, index)) or code.contexts[agent]
        for index in range(count)
    ]
    asked: list[ContextProvider] = []
    places: list[int] = []
    for provider in wanted:
        place = next((at for at, known in enumerate(asked) if known is provider), len(asked))
        if place == len(asked):
            asked.append(provider)
        places.append(place)
    return [await _fetch_slice(call, provider, inputs, state) for provider in asked], places


async def _fetch_slice(
    call: CodeCall,
    provider: ContextProvider,
    inputs: Sequence[Envelope],
    state: dict[str, Any],
) -> dict[str, Any]:
    fallback = call.workflow.board_code.fallbacks.get(call.active.agent)
    try:
        return await _ask_provider(call, provider, inputs, state)
    except ToolError as error:
        if fallback is None or provider is fallback:
            raise
        record = await _ask_provider(call, fallback, inputs, state)
        return {**record, "instead_of": name_of(provider), "error": str(error)}


async def _ask_provider(
    call: CodeCall,
    provider: ContextProvider,
    inputs: Sequence[Envelope],
    state: dict[str, Any],
) -> dict[str, Any]:
    """Call a provider within its time limit, and drop items its agent may not see."""
    served: set[str] = set()
    # Copies: a provider cannot change the inputs of others, and its changes
    # to the state are kept only after it has returned.
    own_inputs = [replace(input_, payload=deepcopy(input_.payload)) for input_ in inputs]
    ctx = eval_context(call, own_inputs, deepcopy(state), served=served)
    request = ContextRequest(
        ctx.agent,
        ctx,
        ctx.inputs,
        ctx.board,
        ctx.correlation_id,
        config=deepcopy(spec_of(call.workflow.compiled, call.active.agent).context_config),
        similarity=call.ports.similarity,
    )
    name = name_of(provider)
    begun, clock = time.perf_counter(), call.ports.clock.now()

    def record(**given: object) -> dict[str, Any]:
        empty: dict[str, Any] = {"items": [], "metadata": {}, "foreign": 0, "dropped": 0}
        ms = round((time.perf_counter() - begun) * 1000, 1)
        return {"provider": name, **empty, **given, "started_at": clock, "ms": ms}

    limit = asyncio.timeout(PROVIDER_SECONDS)
    try:
        async with limit:
            selects = isinstance(provider, SelectingProvider)
            asked = request.select(provider) if selects else call_user_code(provider, request)
            given = await asked
        if not isinstance(given, ContextSlice):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"it returned {type(given).__name__}, not a ContextSlice")  # noqa: TRY301
        items, metadata = _plain_slice(given)
    except Exception as error:  # whatever an author's provider raises
        if limit.expired():
            message = f"the provider {name} took longer than {PROVIDER_SECONDS:g} seconds"
        else:
            message = f"the provider {name} failed: {describe_error(error)}"
        raise _ProviderFailed(message, record()) from error
    state.update(ctx.state)
    foreign = await _hidden_item_ids(call, items, served)
    own = [item for item in items if str(item.get("id")) not in foreign]
    bounded = own[:MAX_ITEMS]
    return record(
        items=bounded,
        metadata=metadata,
        foreign=len(items) - len(own),
        dropped=len(own) - len(bounded),
    )


def _plain_slice(given: ContextSlice) -> tuple[list[Item], dict[str, Any]]:
    items: Any
    metadata: Any
    items, metadata = cast("list[Any]", plain_json((given.items, given.metadata)))
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):  # pyright: ignore[reportUnknownVariableType]
        raise TypeError("its items are not a list of objects")
    if not isinstance(metadata, dict):
        raise TypeError("its metadata is not an object")
    return cast("tuple[list[Item], dict[str, Any]]", (items, metadata))


async def _hidden_item_ids(call: CodeCall, items: Sequence[Item], served: set[str]) -> set[str]:
    """Return the ids of items that bypassed the reader and that the agent may not see."""
    ids = {str(item["id"]) for item in items if item.get("id") is not None} - served
    if not ids:
        return ids
    rules, agent, app = rules_of(call.workflow.compiled), call.active.agent, call.state.app
    reader = Identity(agent, rules.agents[agent].labels, app)
    # No limit: several artifacts may have the same id.
    query = ArtifactQuery(
        app,
        rules.name,
        reader,
        call.ports.clock.now(),
        owners_of_run(call.state),
        ids=tuple(sorted(ids)),
    )
    page = await call.ports.store.artifacts(query)
    return ids - {item.artifact.id for item in page.items}


def _as_draft(envelope: Envelope) -> dict[str, Any]:
    policy = envelope.visibility
    return {
        **envelope.item(),
        "partition_key": envelope.partition_key,
        "created_at": milliseconds(envelope.created_at),
        "visibility": None if policy is None else policy_json(policy),
    }
