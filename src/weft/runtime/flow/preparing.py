"""Prepares a step: assembles its context and the messages of its agent."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from inspect import iscoroutinefunction, isgenerator
from itertools import islice
from typing import Any, Final, cast

from weft.context.agent_step import StepContext
from weft.context.step_context import (
    ArtifactsContextSegment,
    AssembledContext,
    ContextSegment,
    LiteralContextSegment,
    RetrievalContextSegment,
    StateContextSegment,
    VariableContextSegment,
    context_record,
    state_value,
)
from weft.context.user_code import describe_error, user_code
from weft.engine.events.kinds import StepInput
from weft.errors import ToolError, WeftError
from weft.findings import Json
from weft.ports.model import ChatMessage
from weft.runtime.flow.calls import (
    board_for_step,
    code_of,
    current_step,
    current_work,
    exception_of,
    state_for_step,
    step_context,
    step_run,
)
from weft.runtime.flow.code import FindAdapter
from weft.runtime.flow.retrieval import RunSearches
from weft.runtime.tools.code_call import CodeCall
from weft.runtime.variables.json_values import plain_json
from weft.spec.agents import HistoryIngredient, LiteralIngredient
from weft.spec.flow import (
    AgentWork,
    ArtifactsIngredient,
    RetrievalFilter,
    RetrievalIngredient,
    StateIngredient,
    StepIngredient,
    VariableIngredient,
)

#: The roles in the messages of a step, and the greatest number of messages.
_ROLES: Final = ("system", "user", "assistant")
_MOST_MESSAGES: Final = 1_000


async def prepare_step(call: CodeCall) -> tuple[StepInput, str]:
    """Assemble the context of a step; return it, or the record of the exception and its message."""
    begun = time.perf_counter()
    try:
        with user_code:
            given = state_for_step(call).state
            assembly, context = await _assemble_context(call, given)
            messages = await _build_messages(call, given, assembly)
        found = {"messages": messages, "context": context}
        plain = cast("StepInput", plain_json(found))
    except (WeftError, ValueError) as error:
        return _exception_record(error), str(error)
    except Exception as error:  # noqa: BLE001 - what an author's object does becomes an event
        message = f"the context cannot be assembled: {describe_error(error)}"
        return _exception_record(error), message
    return {**plain, "ms": round((time.perf_counter() - begun) * 1000, 1)}, ""


def _exception_record(error: Exception) -> StepInput:
    raised = exception_of(error)
    return StepInput() if raised is None else StepInput(exception=raised)


async def _assemble_context(
    call: CodeCall, state: object
) -> tuple[AssembledContext, dict[str, Any] | None]:
    """Return the context of a step for its code, and its recorded form."""
    declared = current_step(call).context
    if declared is None or step_run(call).undoes:
        return AssembledContext.empty(), None
    context = replace(
        step_context(call, AssembledContext.empty()), board=partial(board_for_step, call)
    )
    searches = RunSearches(
        call.state.app, call.state.run, call.ports.retrievers, call.ports.searches
    )
    linked = code_of(call).assembler(declared)
    if linked is None:
        whole = await assemble_sources(declared.sources, state, context, searches.adapter)
    else:
        made = linked.instance(searches.adapter)
        name = f"{linked.name}.assemble"
        whole = await call.invoke(name, made.assemble, state, context)
        _require_context(name, whole)
    formatted = whole if whole.format is not None else replace(whole, format=declared.format)
    fitting, left_out = formatted.fitted()
    return fitting, context_record(fitting, left_out)


def _require_context(name: str, given: object) -> None:
    if not isinstance(given, AssembledContext):
        raise ToolError(f"{name} returned {type(given).__name__}; return an AssembledContext")
    pieces = cast("tuple[object, ...]", given.segments)
    strange = [piece for piece in pieces if not isinstance(piece, ContextSegment)]
    if strange:
        kind = type(strange[0]).__name__
        raise ToolError(f"{name} returned {kind} as a segment; use a segment class of weft.flow")


# -- the declared sources


async def assemble_sources(
    sources: Iterable[StepIngredient],
    state: object,
    context: StepContext,
    find: FindAdapter,
) -> AssembledContext:
    """Assemble a declared context; all sources are read concurrently."""
    # Earlier messages of agents come from the run and are not part of the context.
    wanted = [source for source in sources if not isinstance(source, HistoryIngredient)]
    pieces = await asyncio.gather(*(_segment(source, state, context, find) for source in wanted))
    return AssembledContext(tuple(pieces))


async def _segment(
    source: StepIngredient, state: object, context: StepContext, find: FindAdapter
) -> ContextSegment:
    match source:
        case StateIngredient(path=path):
            return StateContextSegment(path, state_value(state, path))
        case VariableIngredient(name=name):
            if name not in context.variables:
                raise ToolError(f"{context.step} may not be shown {name}")
            return VariableContextSegment(name, context.variables[name])
        case RetrievalIngredient():
            return await _search(source, state, find)
        case ArtifactsIngredient(board=board, filters=filters, limit=limit):
            most = min(limit, filters.limit or limit)
            found = await context.board(board).find(filters.model_copy(update={"limit": most}))
            return ArtifactsContextSegment(board, tuple(artifact.item() for artifact in found))
        case LiteralIngredient(text=text):
            return LiteralContextSegment(text)
        case HistoryIngredient():  # pragma: no cover - never asked for
            raise AssertionError


async def _search(
    source: RetrievalIngredient, state: object, find: FindAdapter
) -> RetrievalContextSegment:
    query = source.query if source.query_path is None else state_value(state, source.query_path)
    results = await find(source.collection).search(
        cast("str", query),
        top_k=source.top_k,
        min_relevance=source.min_relevance,
        filters={condition.key: _filter_value(condition, state) for condition in source.filters},
    )
    return RetrievalContextSegment(source.collection, tuple(results))


def _filter_value(condition: RetrievalFilter, state: object) -> Json:
    return condition.value if condition.path is None else state_value(state, condition.path)


# -- the messages of an agent's step


async def _build_messages(
    call: CodeCall, state: object, assembly: AssembledContext
) -> list[ChatMessage] | None:
    """Return the messages of an agent's step; None if no class builds them."""
    work = current_work(call)
    if not isinstance(work, AgentWork) or work.step is None:
        return None
    step = code_of(call).agent(work)
    name = f"{type(step).__name__}.build_messages"
    awaited = iscoroutinefunction(step.build_messages)
    build = step.build_messages if awaited else partial(_collect_messages, step.build_messages)
    given = await call.invoke(name, build, state, assembly, step_context(call, assembly))
    return _check_messages(name, given)


def _collect_messages(build: Callable[..., object], *arguments: object) -> object:
    """Call a method in its thread; a generator is read to its end."""
    made = build(*arguments)
    return list(islice(cast("Iterator[Any]", made), _MOST_MESSAGES)) if isgenerator(made) else made


def _check_messages(name: str, given: object) -> list[ChatMessage]:
    messages = cast("list[Any]", given) if isinstance(given, list | tuple) else None
    if not messages or len(messages) >= _MOST_MESSAGES:
        raise ToolError(f"{name} returned no messages: {{'role': ..., 'content': ...}}")
    for part in messages:
        message: Mapping[str, Any] = cast("Any", part) if isinstance(part, Mapping) else {}
        if message.get("role") not in _ROLES or not isinstance(message.get("content"), str):
            raise ToolError(
                f"{name} returned something other than a message, which is a dict with a `role`, "
                f"one of {', '.join(_ROLES)}, and a text as its `content`"
            )
    return [{"role": message["role"], "content": message["content"]} for message in messages]
