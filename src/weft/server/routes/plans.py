"""Plans of the Generator: start a design, read its plan, edit, approve or comment on it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, cast

from fastapi import Depends, Query
from pydantic import Field, JsonValue, StringConstraints
from typing_extensions import TypedDict

from weft.app.generation import (
    ACCEPTED,
    ADJUST,
    APPROVALS,
    EDITED,
    GENERATOR,
    Generation,
    PlanPart,
    Round,
    commented_part,
    plan_text,
    plan_values,
    read_generation,
    read_plan,
    read_plan_data,
)
from weft.engine.rows import OpenRequest, RunRow
from weft.errors import CheckFailed, ConflictError, NotFoundError, UsageError, WeftError
from weft.findings import Json
from weft.generator.forms.form import example_form, form_plan, read_form
from weft.generator.forms.skeleton import open_places
from weft.generator.plans.plan import compare_plans, plan_hash
from weft.generator.steps import DESIGNER as DESIGNER_MODEL
from weft.generator.steps import is_generator
from weft.server.actions import StartBody, Values, answer_request, start_run
from weft.server.answers import Started, page_of
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, Principal
from weft.server.parameters import Body, Cursor, Limit, RequestKey, RunPath
from weft.server.routing import Caller, Context, Routes
from weft.spec.plan import ActionPlan

routes: Final = Routes("plans")

#: The parts of a plan by their names in comments.
_PARTS: Final[Mapping[PlanPart, str]] = {
    "pattern": "PatternSelection",
    "strategy": "WorkflowStrategy",
    "blueprint": "TechnicalBlueprint",
    "agents": "ModuleAgents",
}

RoundNumber = Annotated[int | None, Query(ge=1, le=10_000)]
PlanHash = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(max_length=100_000, pattern=r"\S")]


DesignState: TypeAlias = Literal[
    "working", "questions wait", "plan waits", "package waits", "installed", "refused", "ended"
]


class DesignBody(Body):
    """What the workflow should do: in words, as a form, or as an action plan."""

    brief: Text | None = None
    #: The workflow step by step, in YAML or JSON; `GET /api/forms/example` has one with comments.
    form: Text | None = None
    plan: dict[str, JsonValue] | None = None
    #: The model of every agent, such as `designer` for fixed rules; by default `designer` for a
    #: form, else as for all runs.
    model: str | None = Field(default=None, min_length=1, max_length=200)


class EditBody(Body):
    """Another part of a plan; or the whole plan as text, in YAML or JSON."""

    part: PlanPart | None = None
    value: dict[str, JsonValue] | list[JsonValue] | None = None
    text: Text | None = None
    #: The hash of the plan that was edited; by default the last one.
    hash: PlanHash | None = None


class ApprovalBody(Body):
    """The hash of the plan that is approved."""

    hash: PlanHash
    #: Approve a skeleton as it is: a plan that leaves places open.
    skeleton: bool = False


class FormAnswer(TypedDict):
    """A form with comments."""

    text: str


class CommentBody(Body):
    """What is to change, and in which part; by default the part that the text is about."""

    text: Annotated[str, StringConstraints(max_length=10_000, pattern=r"\S")]
    part: PlanPart | None = None


class DesignAnswer(TypedDict):
    """A design, and how far it is."""

    run: str
    user: str
    started_at: int
    #: How the run began.
    preview: str
    #: The name of the workflow that is designed; empty until there is a plan.
    workflow: str
    #: `refused`: somebody declined the package; `ended`: the run ended without a package.
    state: DesignState


class RoundAnswer(TypedDict):
    """A plan that was offered, and its hash."""

    round: int
    hash: str


class PlanAnswer(RoundAnswer):
    """The plan of a round, the last one by default, and how far the design is."""

    run: str
    rounds: int
    #: pending, accepted, or adjustments_requested.
    acceptance: str
    comments: list[dict[str, JsonValue]]
    #: What the plan leaves open; with anything in it, it is a skeleton.
    open: list[str]
    plan: dict[str, JsonValue]
    #: The plan in YAML, to edit it.
    text: str
    #: The packages that can be downloaded.
    packages: list[str]


class PlanChangeAnswer(TypedDict):
    """A difference between two plans; null where something is not there."""

    path: str
    before: JsonValue
    after: JsonValue


class PlanDiffAnswer(TypedDict):
    """How a plan differs from another one."""

    old: RoundAnswer
    new: RoundAnswer
    changes: list[PlanChangeAnswer]


class Design(NamedTuple):
    """A run of the Generator with a plan."""

    run: str
    generation: Generation

    @property
    def last(self) -> Round:
        """The plan of the last round."""
        return self.generation.rounds[-1]

    def round(self, number: int | None) -> Round:
        """Return the plan of a round, by default the last; raises NotFoundError."""
        rounds = self.generation.rounds
        wanted = len(rounds) if number is None else number
        if not 0 < wanted <= len(rounds):
            raise NotFoundError(
                f"run {self.run} has no round {wanted}", hint=f"it has {len(rounds)} rounds"
            )
        return rounds[wanted - 1]


async def _find(run: RunPath, caller: Caller, context: Context) -> Design:
    """Return a design that has a plan; raises NotFoundError if there is none."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    generation = None
    if is_generator(workflow.spec):
        generation = read_generation(await context.host.state(run, scope=caller.scope))
    if generation is None or not generation.rounds:
        raise NotFoundError(
            f"run {run} has no plan", hint="a design has one after its questions are answered"
        )
    return Design(run, generation)


#: The design that a path names.
FoundDesign: TypeAlias = Annotated[Design, Depends(_find)]


@routes.add("GET", "/api/forms/example", roles=DEVELOPER, answer=FormAnswer)
async def show_example_form() -> object:
    """Return a form with comments, to begin with."""
    # The first line is for editors of files.
    return {"text": example_form("ClinicIntake").partition("\n")[2]}


@routes.add("GET", "/api/plans", roles=DEVELOPER, answer=page_of(DesignAnswer))
async def list_designs(
    caller: Caller, context: Context, cursor: Cursor = None, limit: Limit = 50
) -> object:
    """List the designs of the tenant, newest first."""
    rows = await context.host.runs(
        scope=caller.scope, workflow=GENERATOR, before=cursor, limit=limit + 1, only_own=True
    )
    shown = [await _design_row(context, caller, row) for row in rows[:limit]]
    return {"items": shown, "next": rows[limit - 1].run if len(rows) > limit else None}


@routes.add_start("POST", "/api/plans", roles=DEVELOPER)
async def design(
    body: DesignBody, caller: Caller, context: Context, key: RequestKey = None
) -> Started:
    """Start a design; the run asks its questions as every run does."""
    given = [name for name in ("brief", "form", "plan") if getattr(body, name) is not None]
    if len(given) != 1:
        hint = f"only one of them: leave out {' or '.join(given)}" if given else "give one of them"
        raise UsageError("a design begins with a brief, a form or a plan", hint=hint)
    message, values, model = body.brief, None, body.model
    if body.brief is None:
        what, plan = await asyncio.to_thread(_given_plan, body)
        message = f"The {what} is given: {plan.strategy.workflow_name}"
        values = cast("Values", plan_values(plan))
    if body.form is not None:  # A form says all; the server's model would answer parts of it again.
        model = model or DESIGNER_MODEL
    begin = StartBody(workflow=GENERATOR, message=message, values=values, model=model)
    return await start_run(context, caller, begin, key=key)


@routes.add("GET", "/api/plans/{run}", roles=DEVELOPER, answer=PlanAnswer)
async def show_plan(found: FoundDesign, round: RoundNumber = None) -> object:  # noqa: A002
    """Return the plan of a design."""
    shown, generation = found.round(round), found.generation
    return {
        **_round(shown),
        "run": found.run,
        "rounds": len(generation.rounds),
        "acceptance": generation.acceptance,
        "comments": [dict(comment) for comment in generation.comments],
        "open": list(open_places(shown.plan)),
        "plan": shown.plan.model_dump(mode="json", by_alias=True),
        "text": plan_text(shown.plan),
        "packages": sorted(generation.bundle.get("packages", {})),
    }


@routes.add("PUT", "/api/plans/{run}", roles=DEVELOPER, answer=RoundAnswer)
async def edit_plan(found: FoundDesign, body: EditBody, caller: Caller, context: Context) -> object:
    """Edit the last plan while it waits for a decision; the result is the plan of a new round.

    A plan that is not complete is refused, with findings at the lines of its text.
    """
    if body.hash is not None:
        _require_last(found, body.hash)
    edited = await asyncio.to_thread(_edited_plan, found.last.plan, body)
    made = Round(found.last.number + 1, plan_hash(edited), edited)
    if made.hash == found.last.hash:
        raise UsageError(f"the plan of run {found.run} is the same", hint="change something in it")
    record = edited.model_dump(mode="json", by_alias=True)
    await _decide(context, caller, found, {"plan_acceptance": EDITED, "plan": record})
    return _round(made)


@routes.add("GET", "/api/plans/{run}/rounds", roles=DEVELOPER, answer=page_of(RoundAnswer))
async def list_rounds(found: FoundDesign) -> object:
    """List the plans that a design has offered."""
    return [_round(each) for each in found.generation.rounds]


@routes.add("GET", "/api/plans/{run}/diff", roles=DEVELOPER, answer=PlanDiffAnswer)
async def show_diff(
    found: FoundDesign,
    old: Annotated[RoundNumber, Query(alias="from")] = None,
    new: Annotated[RoundNumber, Query(alias="to")] = None,
) -> object:
    """Compare two rounds of a plan; by default the last two."""
    after = found.round(new)
    before = found.round(max(after.number - 1, 1) if old is None else old)
    changes = [
        {"path": change.path, "before": change.before, "after": change.after}
        for change in compare_plans(before.plan, after.plan)
    ]
    return {"old": _round(before), "new": _round(after), "changes": changes}


@routes.add("POST", "/api/plans/{run}/approve", roles=DEVELOPER)
async def approve(found: FoundDesign, body: ApprovalBody, caller: Caller, context: Context) -> None:
    """Approve the plan with this hash; 409 if it is not the last one any more."""
    _require_last(found, body.hash)
    places = open_places(found.last.plan)
    if places and not body.skeleton:
        raise UsageError(
            f"the plan is a skeleton: {len(places)} places are open",
            hint="decide them in the plan, or approve it as it is with skeleton: true",
        )
    if found.generation.acceptance != ACCEPTED:
        await _decide(context, caller, found, {"plan_acceptance": ACCEPTED})


@routes.add("POST", "/api/plans/{run}/comment", roles=DEVELOPER)
async def comment(found: FoundDesign, body: CommentBody, caller: Caller, context: Context) -> None:
    """Ask for another plan."""
    about = commented_part(body.text, body.part)
    answer = {"plan_acceptance": ADJUST, "about": about, "comments": body.text}
    await _decide(context, caller, found, answer)


async def _design_row(context: ServerContext, caller: Principal, row: RunRow) -> DesignAnswer:
    """Return a design as the list shows it."""
    generation = None
    workflow = await context.host.workflow(row.run, scope=caller.scope)
    if is_generator(workflow.spec):
        generation = read_generation(await context.host.state(row.run, scope=caller.scope))
    rounds = () if generation is None else generation.rounds
    return DesignAnswer(
        run=row.run,
        user=row.user,
        started_at=row.started_at,
        preview=row.preview,
        workflow=rounds[-1].plan.strategy.workflow_name if rounds else "",
        state=await _design_state(context, caller, row, generation),
    )


async def _design_state(
    context: ServerContext, caller: Principal, row: RunRow, generation: Generation | None
) -> DesignState:
    """Return how far a design is."""
    if row.status == "running":
        return "working"
    packages = () if generation is None else tuple(generation.bundle.get("packages", ()))
    if generation is not None and packages:
        if generation.promotion == "declined":
            return "refused"
        is_installed = generation.promotion == "approved" and await _are_installed(
            context, caller, packages
        )
        return "installed" if is_installed else "package waits"
    if row.status == "ended":
        return "ended"
    return "plan waits" if generation and generation.rounds else "questions wait"


async def _are_installed(
    context: ServerContext, caller: Principal, packages: Iterable[str]
) -> bool:
    """Tell whether the tenant has workflows of these names."""
    try:
        for name in packages:
            await context.host.current_workflow(name, app=caller.app)
    except WeftError:
        return False
    return True


def _given_plan(body: DesignBody) -> tuple[str, ActionPlan]:
    """Return what a design begins with instead of a brief, and its plan; raises CheckFailed."""
    if body.form is not None:
        form = body.form
        return "form", _read("form", lambda: form_plan(read_form("form.yaml", form)))
    return "plan", _read("plan", lambda: read_plan_data(body.plan, name="the request"))


def _edited_plan(plan: ActionPlan, body: EditBody) -> ActionPlan:
    """Return a plan as it was edited; raises CheckFailed if it is not complete."""
    if body.text is not None and body.part is None and body.value is None:
        text = body.text
        return _read("plan", lambda: read_plan("plan.yaml", text))
    if body.text is not None or body.part is None or body.value is None:
        raise UsageError("an edit is a part with its value, or a text", hint="give one of both")
    data = plan.model_dump(mode="json", by_alias=True) | {_PARTS[body.part]: body.value}
    return _read("plan", lambda: read_plan_data(data))


def _read(what: str, read: Callable[[], ActionPlan]) -> ActionPlan:
    try:
        return read()
    except UsageError as error:
        if not error.findings:
            raise
        raise CheckFailed(f"the {what} is not complete", error.findings) from None


def _require_last(found: Design, named: str) -> None:
    """Raise ConflictError if the last plan of a design has another hash."""
    if named != found.last.hash:
        raise ConflictError(
            f"the plan of run {found.run} has another hash: {found.last.hash}",
            hint="read the plan again, and decide again",
        )


def _round(found: Round) -> RoundAnswer:
    return RoundAnswer(round=found.number, hash=found.hash)


async def _decide(
    context: ServerContext, caller: Principal, found: Design, answer: Mapping[str, Json]
) -> None:
    """Answer the question about the last plan; raises ConflictError if it is not open."""
    asked = await context.host.requests(scope=caller.scope, run=found.run)
    request: OpenRequest | None = next((each for each in asked if each.tool in APPROVALS), None)
    if request is None:
        raise ConflictError(
            f"run {found.run} does not wait for a decision on its plan",
            hint="GET /api/runs/RUN says what it waits for",
        )
    value: dict[str, Any] = {**answer, "plan_hash": found.last.hash}
    await answer_request(context, caller, found.run, request.id, value)
