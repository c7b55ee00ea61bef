"""Publishing from outside: which artifacts a board accepts, and the run they go to."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import VISIBILITY, JsonDraft, artifact_event
from weft.engine.board.rules import BoardRules
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

#: The maximal length of the id of an artifact, of a correlation, a partition and a tag.
MAX_NAME = 200

#: Characters that names of runs have and correlations must not have.
_MARKS = frozenset("#~")


class Publication(NamedTuple):
    """A published artifact: its id, its run and its correlation."""

    id: str
    run: str
    correlation_id: str


class BoardStart(NamedTuple):
    """The start of the run of a correlation that is not open."""

    workflow: Workflow
    model: str | None
    correlation: str
    name: str


class Offer(NamedTuple):
    """An artifact to be published, as it was given."""

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
    """Return an offer as a draft. Raises UsageError that names the invalid field."""
    _require_board(workflow)
    try:
        tags = name_list(offer.tags) if offer.tags else ()
    except ValueError as error:
        raise UsageError(f"the tags cannot be used: {error}") from None
    if _MARKS.intersection(offer.correlation or ""):
        raise UsageError(
            f"{offer.correlation!r} cannot be a correlation: # and ~ are reserved",
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
        raise UsageError(f"the payload cannot be stored: {error}") from error
    fault = workflow.types.validation_error(offer.type, payload)
    if fault:
        raise UsageError(f"the payload is not a valid {offer.type}: {fault}")
    draft: JsonDraft = {
        "type": offer.type,
        "payload": payload,
        "tags": list(tags),
        "partition_key": offer.partition,
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
            hint="publish to a workflow with board.json; start this one as a run",
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
    """Raise UsageError unless an agent accepts a type that is published to it alone."""
    rules = require_agent(workflow, offer.agent)
    takes = {
        type_
        for subscription in rules.subscriptions.values()
        if subscription.agent == offer.agent and subscription.mode != "events"
        for type_ in subscription.needed
    }
    if offer.type not in takes:
        known = ", ".join(sorted(takes)) or "nothing"
        raise UsageError(
            f"{offer.agent} does not accept a {offer.type} that is published to it alone",
            hint=f"it accepts: {known}",
        )


def require_agent(workflow: Workflow, agent: str) -> BoardRules:
    """Return the rules of a board. Raises UsageError if it has no such agent."""
    rules = rules_of(workflow.compiled)
    if agent not in rules.agents:
        near = nearest(agent, rules.agents)
        known = f"the board has: {', '.join(rules.agents)}"
        raise UsageError(
            f"there is no agent {agent} on the board {workflow.name}",
            hint=f"did you mean {near}?" if near else known,
        )
    return rules


@lru_cache
def _outside_runs(app: str) -> State:
    """Return the empty state for code that is called with an artifact from outside."""
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
    """Return the event of a publication. Raises UsageError if it is refused."""
    draft = {**draft, "id": offer.id}
    call = CodeCall(ports, workflow, _outside_runs(app), Call("", app=app))
    try:
        draft = await consult_components(call, "", draft)
    except ToolError as error:
        raise UsageError(f"it cannot be published: {error}") from error
    if "blocked" in draft:
        raise UsageError(f"{offer.type} was not published: blocked {draft['blocked']}")
    made = artifact_event(
        rules_of(workflow.compiled), app, draft, by=f"user:{user}", direct=offer.agent
    )
    if offer.agent and not made.wakes:
        none = "its where, its semantic_match or its visibility excludes it"
        why = next(iter(made.errors.values()), none)
        raise UsageError(f"{offer.agent} does not accept this {offer.type}: {why}")
    return made


def correlation_of(board: str, owner: str, artifact: str) -> str:
    """Return the correlation that an artifact with an id of the publisher's choice begins."""
    return hashlib.sha256(f"{board}\n{owner}\n{artifact}".encode()).hexdigest()[:32]
