"""Before a step works: its context is put together, and the messages of its agent."""

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
    recorded,
    state_value,
)
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

#: Who may say something in the messages of a step, and how many there may be.
_ROLES: Final = ("system", "user", "assistant")
_MOST_MESSAGES: Final = 1_000


async def prepare_step(call: CodeCall) -> tuple[StepInput, str]:
    """Put together what a step is shown; return it, or what is known of the error, and a fault."""
    begun = time.perf_counter()
    try:
        given = state_for_step(call).state
        assembly, context = await _assemble_context(call, given)
        messages = await _build_messages(call, given, assembly)
        found = {"messages": messages, "context": context}
        plain = cast("StepInput", plain_json(found))
    except (WeftError, ValueError) as error:
        return _exception_record(error), str(error)
    except Exception as error:  # noqa: BLE001 - what an author's object does becomes an event
        told = f"the context cannot be put together: {type(error).__name__}: {error}"
        return _exception_record(error), told
    return {**plain, "ms": round((time.perf_counter() - begun) * 1000, 1)}, ""


def _exception_record(error: Exception) -> StepInput:
    raised = exception_of(error)
    return StepInput() if raised is None else StepInput(exception=raised)


async def _assemble_context(
    call: CodeCall, state: object
) -> tuple[AssembledContext, dict[str, Any] | None]:
    """Return the context of a step as code gets it, and as it is recorded."""
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
    return fitting, recorded(fitting, left_out)


def _require_context(name: str, given: object) -> None:
    if not isinstance(given, AssembledContext):
        raise ToolError(f"{name} returned {type(given).__name__}; return an AssembledContext")
    pieces = cast("tuple[object, ...]", given.segments)
    strange = [piece for piece in pieces if not isinstance(piece, ContextSegment)]
    if strange:
        raise ToolError(f"{name} returned a segment that is none: {type(strange[0]).__name__}")


# -- the declared sources


async def assemble_sources(
    sources: Iterable[StepIngredient],
    state: object,
    context: StepContext,
    find: FindAdapter,
) -> AssembledContext:
    """Put a context together as it is declared. All sources are asked at the same time."""
    # Earlier messages of agents come from the run and are not part of the context.
    wanted = [source for source in sources if not isinstance(source, HistoryIngredient)]
    pieces = await asyncio.gather(*(_segment(it, state, context, find) for it in wanted))
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
            return ArtifactsContextSegment(board, tuple(it.item() for it in found))
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
        filters={it.key: _filter_value(it, state) for it in source.filters},
    )
    return RetrievalContextSegment(source.collection, tuple(results))


def _filter_value(it: RetrievalFilter, state: object) -> Json:
    return it.value if it.path is None else state_value(state, it.path)


# -- the messages of an agent's step


async def _build_messages(
    call: CodeCall, state: object, assembly: AssembledContext
) -> list[ChatMessage] | None:
    """Return what the step of an agent sends; None where no class writes that."""
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
    """Call a method in its thread to its end, should it be a generator."""
    made = build(*arguments)
    return list(islice(cast("Iterator[Any]", made), _MOST_MESSAGES)) if isgenerator(made) else made


def _check_messages(name: str, given: object) -> list[ChatMessage]:
    messages = cast("list[Any]", given) if isinstance(given, list | tuple) else None
    if not messages or len(messages) >= _MOST_MESSAGES:
        raise ToolError(f"{name} returned no list of messages: {{'role': ..., 'content': ...}}")
    for it in messages:
        message: Mapping[str, Any] = cast("Any", it) if isinstance(it, Mapping) else {}
        if message.get("role") not in _ROLES or not isinstance(message.get("content"), str):
            raise ToolError(
                f"{name} returned something other than a message, which is a dict with a `role`, "
                f"one of {', '.join(_ROLES)}, and a text as its `content`"
            )
    return [{"role": it["role"], "content": it["content"]} for it in messages]
