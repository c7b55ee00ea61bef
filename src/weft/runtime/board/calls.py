"""Calling the code of a board: before an agent works, its engines, and around what it publishes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import ValidationError

from weft.context.similarity import NO_EMBEDDINGS, Similarity, text_of
from weft.context.slices import AgentInfo, Envelope, Item, utc
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import (
    VISIBILITY,
    JsonDraft,
    Unpublishable,
    dumped,
    fulfils,
    reviewed,
)
from weft.engine.board.rules import SubscriptionRules, test_of
from weft.engine.board.turn import AFTER, ENGINE, PUBLISH, inputs_of, spec_of
from weft.engine.board.visibility import audience, may_see
from weft.engine.state import Activation, State
from weft.errors import RetrievalError, ToolError
from weft.findings import Json
from weft.ports.board import BoardStore
from weft.ports.clock import Clock
from weft.ports.tools import ToolCall
from weft.runtime.board.code import BoardCode, payload_for
from weft.runtime.board.evaluation import (
    CONTINUE,
    EvalContext,
    EvalInputs,
    EvalResult,
    Output,
    Verdict,
    drafts_of,
)
from weft.runtime.board.reading import reader_for
from weft.runtime.tools.context_variables import Context
from weft.runtime.variables.json_values import own_copy, plain_json
from weft.runtime.workflow import Workflow
from weft.spec.visibility import PUBLIC


@dataclass(frozen=True, slots=True)
class BoardCall:
    """One activation while its code is called."""

    store: BoardStore
    clock: Clock
    workflow: Workflow
    state: State
    active: Activation
    call: ToolCall
    variables: Context | None = None
    similarity: Similarity | None = None

    @property
    def app(self) -> str:
        return self.state.app

    @property
    def code(self) -> BoardCode:
        return cast("BoardCode", self.workflow.board_code)

    async def invoke(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Call code in time; raises ToolError with its name."""
        call = replace(self.call, tool=name)
        return await self.workflow.tools.invoke(call, function, *arguments)

    def context(
        self,
        inputs: Sequence[Envelope],
        state: dict[str, Any],
        items: Iterable[Item] = (),
        served: set[str] | None = None,
    ) -> EvalContext:
        agent = self.active.agent
        now = self.clock.now()
        rules = rules_of(self.workflow.compiled)
        reader = reader_for(
            self.store,
            app=self.state.app,
            board=rules.name,
            reader=rules.identity(agent, self.state.app),
            now=now,
            served=served,
        )
        declared = next((it for it in self.workflow.spec.agents if it.agent_name == agent), None)
        labels = spec_of(self.workflow.compiled, agent).labels
        return EvalContext(
            agent=AgentInfo(agent, declared.description if declared else "", labels),
            run=self.state.run,
            correlation_id=self.state.board.correlation if self.state.board else "",
            key=self.call.key,
            now=utc(now),
            board=reader,
            inputs=EvalInputs(tuple(inputs), state),
            state=state,
            items=tuple(items),
            agent_context_provider=self.code.contexts[agent],
            variables=self.variables,
        )


def plain(value: dict[str, Any]) -> dict[str, Json]:
    """Return what code gave as JSON; raises ValueError if it is none."""
    return cast("dict[str, Json]", plain_json(value))


# -- engines, and around what is published


async def called(board: BoardCall, point: str) -> Json:
    """Call the code of a point of an activation, and return what its event says."""
    if point == ENGINE:
        return cast("Json", await _evaluated(board))
    if point == PUBLISH:
        return cast("Json", await _published(board))
    state = _state_of(board)
    ctx = board.context(envelopes(inputs_of(board.active), board), state, _items(board))
    agent = board.active.agent
    if point == AFTER:
        made = envelopes(cast("list[JsonDraft]", board.active.result or []), board)
        for hook in board.code.hooks_of(agent, "post_publish"):
            await board.invoke(hook.name, hook.call, ctx, made)
        return None
    for hook in board.code.hooks_of(agent, "error"):
        await board.invoke(hook.name, hook.call, ctx, ToolError(str(board.active.result)))
    return None


def _state_of(board: BoardCall) -> dict[str, Any]:
    return dict(
        cast("Mapping[str, Any]", own_copy((board.active.fetched or {}).get("state") or {}))
    )


def _items(board: BoardCall) -> list[Item]:
    """Return the slice of the engine that works."""
    fetched = cast("Mapping[str, Any]", board.active.fetched or {})
    engines: list[int] = fetched.get("engines") or []
    slices: list[dict[str, Any]] = fetched.get("slices") or []
    if board.active.at >= len(engines):
        return []
    return cast("list[Item]", own_copy(slices[engines[board.active.at]]["items"]))


async def _evaluated(board: BoardCall) -> dict[str, Json]:
    agent, at = board.active.agent, board.active.at
    function = board.code.engines[agent, at]
    state = _state_of(board)
    inputs = envelopes(inputs_of(board.active), board)
    name = board.call.tool
    evaluate = getattr(function, "evaluate", None)
    if evaluate is None and (agent, at) in board.code.alone:
        returned = await board.invoke(name, function, EvalInputs(inputs, state))
    else:
        ctx = board.context(inputs, state, _items(board))
        if evaluate is not None:
            returned = await board.invoke(name, evaluate, ctx, ctx.inputs)
        else:
            returned = await board.invoke(name, function, ctx.inputs, ctx)
    publishes = rules_of(board.workflow.compiled).agents[agent].publishes
    drafts, added = drafts_of(returned, board.workflow.types, publishes)
    state.update(added)
    return plain({"artifacts": drafts, "state": state})


async def _published(board: BoardCall) -> list[JsonDraft]:
    """Choose the best, let components have it, ask the functions, and judge what is left."""
    agent = spec_of(board.workflow.compiled, board.active.agent)
    drafts = await _best(board)
    drafts = await _after_evaluation(board, drafts)
    functions = {
        name
        for it in agent.publishes
        for name in (it.where, it.validate_, it.visibility)
        if isinstance(name, str) and _is_function(name)
    }
    answers = {name: await _answers(board, name, drafts) for name in functions}
    try:
        passed = reviewed(agent, drafts, answers)
    except Unpublishable as error:
        raise ToolError(str(error)) from error
    return [await consulted(board, board.active.agent, it) for it in passed]


def _is_function(text: str) -> bool:
    test = test_of(text)
    return test is not None and bool(test.function)


async def _best(board: BoardCall) -> list[JsonDraft]:
    candidates = cast("Sequence[list[JsonDraft]]", board.active.candidates)
    best_of = spec_of(board.workflow.compiled, board.active.agent).best_of
    if best_of is None:
        return list(candidates[-1])
    score = board.code.objects[best_of.score]
    scores: list[float] = []
    for it in candidates:
        value = await board.invoke(best_of.score, score, envelopes(it, board))
        try:
            scores.append(float(value))
        except (TypeError, ValueError):
            raise ToolError(f"{best_of.score} returned {value!r}, which is no number") from None
    return list(candidates[scores.index(max(scores))])


async def _after_evaluation(board: BoardCall, drafts: list[JsonDraft]) -> list[JsonDraft]:
    agent = board.active.agent
    publishes = rules_of(board.workflow.compiled).agents[agent].publishes
    for hook in board.code.hooks_of(agent, "post_evaluate"):
        inputs = envelopes(inputs_of(board.active), board)
        ctx = board.context(inputs, _state_of(board), _items(board))
        result = EvalResult([_output(it, board) for it in drafts])
        given = await board.invoke(hook.name, hook.call, ctx, result)
        if given is not None:
            drafts, _ = drafts_of(given, board.workflow.types, publishes)
    return drafts


def _output(draft: JsonDraft, board: BoardCall) -> Output:
    (it,) = envelopes([draft], board)
    given = draft.get("visibility")
    visibility = VISIBILITY.validate_python(given) if given else None
    return Output(it, it.tags, visibility, it.partition_key)


async def _answers(board: BoardCall, name: str, drafts: Sequence[JsonDraft]) -> list[Json]:
    function = board.code.objects[name]
    answers: list[Json] = []
    for draft in drafts:
        given = await board.invoke(name, function, _payload(function, draft))
        answers.append(dumped(given) if hasattr(given, "kind") else plain_json(given))
    return answers


async def consulted(board: "BoardCall | OutsideCall", agent: str, draft: JsonDraft) -> JsonDraft:
    """Let components see an artifact before it is published, and find out who wants it.

    That is found out here where functions say it, or meanings are compared.
    """
    for hook in board.code.hooks_of(agent, "artifact_published"):
        (it,) = envelopes([draft], board)
        given = await board.invoke(hook.name, hook.call, it)
        if isinstance(given, Verdict) and given.kind == "block":
            return {**draft, "blocked": given.reason or f"by {hook.name}"}
        if given is None or given == CONTINUE:
            continue
        changed, _ = drafts_of(given, board.workflow.types, ())
        if len(changed) != 1 or changed[0]["type"] != draft["type"]:
            raise ToolError(f"{hook.name} returns another {draft['type']}, BLOCK or None")
        draft = {**draft, **changed[0]}
    verdicts: dict[str, Json] = {}
    keys: dict[str, Json] = {}
    for it in _askable(board, draft):
        if it.asks_outside:
            verdicts[it.name] = await _wants(board, it, draft)
        if it.join is not None and it.join.function:
            key = await _verdict_of(board, it.join.function, draft, raw=True)
            if key is not None:
                keys[it.name] = str(key)
    return {**draft, "verdicts": verdicts, "keys": keys}


def _askable(board: "BoardCall | OutsideCall", draft: JsonDraft) -> Iterator[SubscriptionRules]:
    """Yield the subscriptions to a type; code of those that may not see an artifact never gets it.

    A visibility that cannot be read is refused later, and asked about by nobody.
    """
    rules = rules_of(board.workflow.compiled)
    try:
        visibility = VISIBILITY.validate_python(draft.get("visibility", dumped(PUBLIC)))
    except ValidationError:
        return
    seen = audience(visibility, created_at=0, tenant=board.app)._replace(visible_at=0)
    for it in rules.by_type.get(str(draft["type"]), ()):
        if may_see(seen, rules.identity(it.agent, board.app), 0):
            yield it


async def _wants(
    board: "BoardCall | OutsideCall", rules: SubscriptionRules, draft: JsonDraft
) -> bool | str:
    """Tell whether a subscription wants an artifact, or why that cannot be told."""
    held = fulfils(rules, draft["payload"])
    if held is True and rules.where and rules.where.function:
        held = cast("bool | str", await _verdict_of(board, rules.where.function, draft))
    if held is not True or not rules.semantic_match:
        return held
    if board.similarity is None:
        return NO_EMBEDDINGS
    try:
        text = text_of(draft["payload"])
        (score,) = await board.similarity.of(rules.semantic_match, [text])
    except RetrievalError as error:
        return f"it could not be compared with semantic_match: {error}"
    return score >= rules.threshold


async def _verdict_of(
    board: "BoardCall | OutsideCall", name: str, draft: JsonDraft, *, raw: bool = False
) -> Json:
    """Ask a function about a payload; one that raises is no answer, and that is told."""
    try:
        function = board.code.objects[name]
        given = await board.invoke(name, function, _payload(function, draft))
    except ToolError as error:
        return None if raw else str(error)
    return cast("Json", given) if raw else bool(given)


def _payload(function: Callable[..., Any], draft: JsonDraft) -> object:
    try:
        return payload_for(function, own_copy(draft["payload"]))
    except ValueError as error:
        raise ToolError(f"the payload does not fit what is asked about it: {error}") from error


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """What is published from outside, while the code of the board is asked about it."""

    workflow: Workflow
    call: ToolCall
    clock: Clock
    app: str
    similarity: Similarity | None = None

    @property
    def code(self) -> BoardCode:
        return cast("BoardCode", self.workflow.board_code)

    async def invoke(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Call code in time; raises ToolError with its name."""
        return await self.workflow.tools.invoke(replace(self.call, tool=name), function, *arguments)


def envelopes(
    drafts: Sequence[JsonDraft], board: "BoardCall | OutsideCall"
) -> tuple[Envelope, ...]:
    """Return artifacts as code gets them."""
    made: list[Envelope] = []
    for draft in drafts:
        it = cast("dict[str, Any]", draft)
        made.append(
            Envelope(
                id=it.get("id") or "",
                type=it["type"],
                payload=cast("dict[str, Any]", own_copy(it["payload"])),
                produced_by=it.get("produced_by") or "",
                correlation_id=it.get("correlation_id") or "",
                partition_key=it.get("partition_key") or it.get("partition") or None,
                tags=tuple(it.get("tags") or ()),
                created_at=utc(it.get("created_at") or board.clock.now()),
            )
        )
    return tuple(made)


class _NoVariables:
    """The variables of code that is called before an activation has any, or outside of runs."""

    def get(self, key: str, default: Json = None) -> Json:  # noqa: ARG002 - the port's own names
        return default

    def set(self, key: str, value: Json) -> None:  # noqa: ARG002
        raise ToolError(f"{key} cannot be set here")

    def remove(self, key: str) -> None:
        raise ToolError(f"{key} cannot be set here")

    def restart(self) -> None: ...

    def to_dict(self) -> dict[str, Json]:
        return {}


async def _no_answer(tool: str, payload: Json, seconds: float | None, otherwise: Json) -> Json:  # noqa: ARG001
    raise ToolError("nobody can be asked here")


def code_call(run: str, agent: str, key: str) -> ToolCall:
    """Return the call as which code is called that is no tool and no engine."""
    return ToolCall(
        id="",
        run=run,
        agent=agent,
        tool="",
        key=key,
        arguments={},
        variables=_NoVariables(),
        ask=_no_answer,
    )
