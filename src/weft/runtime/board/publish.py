"""Publishing from outside: what is let onto a board, and into which run it goes."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import VISIBILITY, JsonDraft, artifact_event, read_draft
from weft.engine.events import ArtifactPublished
from weft.engine.state import State
from weft.errors import ToolError, UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.ports.tools import Call
from weft.runtime.board.calls import consult_components
from weft.runtime.tools.code_call import CodeCall, CodePorts
from weft.runtime.variables.json_values import plain_json
from weft.runtime.workflow import Workflow
from weft.spec.board import Visibility
from weft.spec.part import name_list

#: How long the name of an artifact, a correlation, a partition or a tag may be.
MAX_NAME = 200

#: What the names of runs have beside those of correlations.
_MARKS = frozenset("#~")


class Publication(NamedTuple):
    """An artifact that is on the board: what it is called, and where it went."""

    id: str
    run: str
    correlation_id: str


class Offer(NamedTuple):
    """What somebody wants to publish."""

    type: str
    payload: object
    tags: Iterable[str] = ()
    visibility: Visibility | Mapping[str, Any] | None = None
    correlation: str | None = None
    partition: str = ""
    id: str = ""
    #: The only agent it is given to; empty for all subscribers.
    agent: str = ""


def validate_offer(workflow: Workflow, offer: Offer) -> JsonDraft:
    """Return what is offered as a draft. Raises UsageError naming the field that is wrong."""
    _require_board(workflow)
    try:
        tags = name_list(offer.tags) if offer.tags else ()
    except ValueError as error:
        raise UsageError(f"the tags cannot be used: {error}") from None
    if _MARKS.intersection(offer.correlation or ""):
        raise UsageError(
            f"{offer.correlation!r} cannot be a correlation: # and ~ mean something in runs",
            hint="leave these two characters out",
        )
    workflow.types.require(offer.type)
    for what, text in (
        ("correlation", offer.correlation or ""),
        ("partition", offer.partition),
        ("id", offer.id),
        *(("tag", tag) for tag in tags),
    ):
        _require_name(what, text)
    try:
        payload = plain_json(offer.payload)
    except ValueError as error:
        raise UsageError(f"the payload cannot be kept: {error}") from error
    fault = workflow.types.validation_error(offer.type, payload)
    if fault:
        raise UsageError(f"the payload is no {offer.type}: {fault}")
    draft: JsonDraft = {
        "type": offer.type,
        "payload": payload,
        "tags": list(tags),
        "partition": offer.partition,
        "id": offer.id,
    }
    if offer.visibility is not None:
        draft["visibility"] = _visibility(offer.visibility)
    if offer.agent:
        _require_consumer(workflow, offer)
    return draft


def _require_board(workflow: Workflow) -> None:
    if workflow.compiled.board is None:
        raise UsageError(
            f"{workflow.name} has no board",
            hint="publish to a workflow with board.json; start this one with weft run",
        )


def _require_name(what: str, text: str) -> None:
    if not isinstance(text, str) or len(text) > MAX_NAME or "\0" in text:  # pyright: ignore[reportUnnecessaryIsInstance]
        told = f"it must be a text of at most {MAX_NAME} characters"
        raise UsageError(f"{text!r:.60} cannot be used as {what}: {told}")
    if what == "tag" and not text:
        raise UsageError("a tag cannot be empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the {what} is not valid Unicode") from None


def _visibility(given: Visibility | Mapping[str, Any]) -> Json:
    try:
        read = VISIBILITY.validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "visibility"
        raise UsageError(
            f"the visibility cannot be used: {place}: {first['msg']}",
            hint="use public, private (agents), labelled (labels), tenant or after (seconds, then)",
        ) from error
    return VISIBILITY.dump_python(read, mode="json")


def _require_consumer(workflow: Workflow, offer: Offer) -> None:
    """Raise UsageError unless an agent takes artifacts of a type that it is given."""
    rules = rules_of(workflow.compiled)
    if offer.agent not in rules.agents:
        near = nearest(offer.agent, rules.agents)
        known = ", ".join(rules.agents)
        hint = f"did you mean {near}?" if near else f"the board has: {known}"
        raise UsageError(f"there is no agent {offer.agent} on the board", hint=hint)
    takes = {
        type_
        for subscription in rules.subscriptions.values()
        if subscription.agent == offer.agent and subscription.mode != "events"
        for type_ in subscription.needed
    }
    if offer.type not in takes:
        known = ", ".join(sorted(takes)) or "nothing"
        raise UsageError(
            f"{offer.agent} takes no {offer.type} that it is given", hint=f"it takes: {known}"
        )


@lru_cache
def _outside_runs(app: str) -> State:
    """Return the state in which code is called for an artifact that comes from outside."""
    return State("", app=app)


async def publish_event(
    workflow: Workflow,
    offer: Offer,
    draft: JsonDraft,
    *,
    app: str,
    user: str,
    ports: CodePorts,
) -> ArtifactPublished:
    """Return the event of what is published. Raises UsageError if it may not be."""
    draft = {**draft, "id": offer.id}
    call = CodeCall(ports, workflow, _outside_runs(app), Call(""))
    try:
        draft = await consult_components(call, "", draft)
    except ToolError as error:
        raise UsageError(f"it cannot be published: {error}") from error
    if "blocked" in draft:
        raise UsageError(f"{offer.type} was not published: blocked {draft['blocked']}")
    read = read_draft(draft, by=f"user:{user}", direct=offer.agent)
    made = artifact_event(rules_of(workflow.compiled), app, read)
    if offer.agent and not made.wakes:
        none = "its where, its semantic_match or its visibility says no"
        why = next(iter(made.faults.values()), none)
        raise UsageError(f"{offer.agent} does not take this {offer.type}: {why}")
    return made
