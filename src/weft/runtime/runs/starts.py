"""Starts: what comes with a run that a form, a webhook or a changed document begins."""

from collections.abc import Mapping
from typing import cast

from weft.engine.events import RequestAnswered, RunStarted
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError, UsageError
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent
from weft.runtime.variables.json_values import plain_json
from weft.runtime.workflow import Workflow
from weft.spec.condition_parser import parse_condition
from weft.spec.orchestrator import DatabaseStart, FormStart, WebhookStart
from weft.spec.type_meaning import validation_error
from weft.spec.types import Ref


def require_way(workflow: Workflow, message: str | None) -> None:
    """Raise UsageError if a workflow begins otherwise than a conversation does."""
    name = workflow.name
    if workflow.compiled.board is not None:
        raise UsageError(
            f"{name} is a board: it begins with an artifact",
            hint=f"publish one with weft board publish {name} TYPE key=value",
        )
    if workflow.compiled.flow is not None and message is not None:
        raise UsageError(
            f"{name} is a flow: it begins with values, not with a message",
            hint=f"give them: weft run {name} --set NAME=VALUE",
        )


def start_input(workflow: Workflow, given: Mapping[str, Json] | None) -> dict[str, Json] | None:
    """Return what a run begins with as it is written down; raises UsageError if it does not fit.

    A form must fit its model, a document the condition that starts the workflow.
    """
    start = workflow.spec.orchestrator.trigger
    if not isinstance(start, FormStart | WebhookStart | DatabaseStart):
        if given is None:
            return None
        raise UsageError(
            f"{workflow.name} is started by {start.type}, with which nothing comes",
            hint="leave the input out; give values of variables with --set NAME=VALUE",
        )
    if given is None and (isinstance(start, DatabaseStart) or _form(start)):
        raise UsageError(f"{workflow.name} needs {_wanted(workflow)}", hint=_hint(workflow))
    try:
        values = cast("dict[str, Json]", plain_json(dict(given or {})))
    except ValueError as error:
        raise UsageError(f"the input is {error}") from error
    fault = _fault(workflow, values)
    if fault:
        raise UsageError(f"the input does not fit: {fault}", hint=_hint(workflow))
    return values


def values_of_input(workflow: Workflow, values: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields that are called like derived variables: these begin with them."""
    variables = workflow.compiled.variables
    return {
        name: value
        for name, value in values.items()
        if name in variables and variables[name].source.type == "derived"
    }


def _fault(workflow: Workflow, values: dict[str, Json]) -> str | None:
    start = workflow.spec.orchestrator.trigger
    if isinstance(start, FormStart) and start.form:
        return validation_error(Ref(start.form), values, workflow.compiled.models)
    if isinstance(start, DatabaseStart):
        try:
            holds = evaluate(parse_condition(start.condition), values)
        except ExpressionError as error:
            return f"the condition {start.condition} cannot be answered: {error}"
        return None if holds else f"the condition {start.condition} does not hold for it"
    return None


def _form(start: FormStart | WebhookStart | DatabaseStart) -> str | None:
    return start.form if isinstance(start, FormStart) else None


def _wanted(workflow: Workflow) -> str:
    start = workflow.spec.orchestrator.trigger
    if isinstance(start, DatabaseStart):
        return f"a document of {start.collection} that fits {start.condition}"
    fields = workflow.compiled.models.get(getattr(start, "form", None) or "", {})
    return f"the fields of its form: {', '.join(fields)}" if fields else "what it is sent"


def _hint(workflow: Workflow) -> str:
    return f"give {_wanted(workflow)}: weft run {workflow.name} --input FILE, or --input NAME=VALUE"


def first_events(
    run: str,
    workflow: Workflow,
    scope: Scope,
    values: dict[str, Json],
    message: str | None,
    model: str | None,
    given: tuple[str, ...],
    brought: dict[str, Json] | None,
) -> tuple[NewEvent, ...]:
    """Return what begins a run; the first message answers the question it begins with."""
    user = scope.user or ""
    begun = RunStarted(
        workflow.name,
        workflow.digest,
        scope.app,
        user,
        values,
        message is not None,
        model,
        given=given,
        input=brought,
    )
    events = (NewEvent(f"user:{user}", begun),)
    if message is None:
        return events
    return (*events, NewEvent(f"user:{user}", RequestAnswered(f"{run}:1", message, user)))
