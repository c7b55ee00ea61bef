"""Plans of the Generator: start a design, read its plan, approve or comment on it, download."""

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

from fastapi import Depends, Query
from fastapi.responses import Response
from pydantic import Field, JsonValue, StringConstraints
from typing_extensions import TypedDict

from weft.app.generation import (
    ACCEPTED,
    ADJUST,
    APPROVALS,
    GENERATOR,
    Generation,
    PlanPart,
    Round,
    commented_part,
    plan_values,
    read_generation,
    read_plan,
)
from weft.app.promotion import bundle_packages
from weft.engine.rows import OpenRequest
from weft.errors import ConflictError, NotFoundError, UsageError
from weft.findings import Json
from weft.generator.plan import compare_plans
from weft.generator.steps import is_generator
from weft.packages.archive.exporting import make_manifest, pack_files
from weft.packages.archive.staging import staged_folder
from weft.packages.reader import read_package
from weft.server.actions import StartBody, Values, answer_request, start_run
from weft.server.answers import FindingAnswer, Started, page_of
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, Principal
from weft.server.parameters import Body, NameFilter, RequestKey, RunPath
from weft.server.routes.packages import owner_of, zip_answer
from weft.server.routing import Caller, Context, Routes
from weft.wire.findings import finding_data

routes: Final = Routes("plans")

#: The parts of a plan by their names in comments.
_PARTS: Final[Mapping[PlanPart, str]] = {
    "pattern": "PatternSelection",
    "strategy": "WorkflowStrategy",
    "blueprint": "TechnicalBlueprint",
    "agents": "ModuleAgents",
}

RoundNumber = Annotated[int | None, Query(ge=1, le=10_000)]


class DesignBody(Body):
    """What the workflow should do, in words; or an action plan, which may have been edited."""

    brief: Annotated[str, StringConstraints(max_length=100_000, pattern=r"\S")] | None = None
    plan: dict[str, JsonValue] | None = None
    #: The model of every agent, such as `designer` for fixed rules; by default as for all runs.
    model: str | None = Field(default=None, min_length=1, max_length=200)


class PartBody(Body):
    """Another part of a plan."""

    part: PlanPart
    value: dict[str, JsonValue] | list[JsonValue]
    model: str | None = Field(default=None, min_length=1, max_length=200)


class ApprovalBody(Body):
    """The hash of the plan that is approved."""

    hash: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class CommentBody(Body):
    """What is to change, and in which part; by default the part that the text is about."""

    text: Annotated[str, StringConstraints(max_length=10_000, pattern=r"\S")]
    part: PlanPart | None = None


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
    plan: dict[str, JsonValue]
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


class DesignedFileAnswer(TypedDict):
    """A file of a package that was designed."""

    path: str
    size: int
    content: str


class DesignedAnswer(TypedDict):
    """A package that was designed and is not installed: its files and findings."""

    name: str
    items: list[DesignedFileAnswer]
    findings: list[FindingAnswer]


class _Design(NamedTuple):
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


class _Package(NamedTuple):
    """A package that was designed."""

    name: str
    files: dict[str, bytes]


async def _find(run: RunPath, caller: Caller, context: Context) -> _Design:
    """Return a design that has a plan; raises NotFoundError if there is none."""
    workflow = await context.host.workflow(run, scope=caller.scope)
    generation = None
    if is_generator(workflow.spec):
        generation = read_generation(await context.host.state(run, scope=caller.scope))
    if generation is None or not generation.rounds:
        raise NotFoundError(
            f"run {run} has no plan", hint="a design has one after its questions are answered"
        )
    return _Design(run, generation)


async def _find_package(
    found: Annotated[_Design, Depends(_find)], package: NameFilter = None
) -> _Package:
    """Return a package that was designed; its name is needed if there are several."""
    run, bundle = found.run, found.generation.bundle
    packages = bundle_packages(bundle) if bundle else {}
    if not packages:
        raise ConflictError(f"run {run} has no package yet", hint="approve its plan first")
    names = ", ".join(packages)
    if package is None and len(packages) > 1:
        raise UsageError(
            f"run {run} has several packages", hint=f"add ?package= and one of {names}"
        )
    name = package or next(iter(packages))
    if name not in packages:
        raise NotFoundError(f"run {run} has no package {name}", hint=f"it has {names}")
    return _Package(name, {path: text.encode() for path, text in packages[name].items()})


#: The design that a path names, and one of its packages.
FoundDesign: TypeAlias = Annotated[_Design, Depends(_find)]
FoundPackage: TypeAlias = Annotated[_Package, Depends(_find_package)]


@routes.add_start("POST", "/api/plans", roles=DEVELOPER)
async def design(
    body: DesignBody, caller: Caller, context: Context, key: RequestKey = None
) -> Started:
    """Start a design; the run asks its questions as every run does."""
    if (body.brief is None) == (body.plan is None):
        raise UsageError("a design begins with a brief or a plan", hint="give one of both")
    begin = StartBody(workflow=GENERATOR, message=body.brief, model=body.model)
    if body.plan is not None:
        begin = _begin_with(body.plan, body.model)
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
        "plan": shown.plan.model_dump(mode="json", by_alias=True),
        "packages": sorted(generation.bundle.get("packages", {})),
    }


@routes.add_start("PUT", "/api/plans/{run}", roles=DEVELOPER)
async def edit_plan(
    found: FoundDesign, body: PartBody, caller: Caller, context: Context, key: RequestKey = None
) -> Started:
    """Start another design with the last plan of this one, in which a part is replaced."""
    plan = found.last.plan.model_dump(mode="json", by_alias=True)
    begin = _begin_with({**plan, _PARTS[body.part]: body.value}, body.model)
    return await start_run(context, caller, begin, key=key)


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
    if body.hash != found.last.hash:
        raise ConflictError(
            f"the plan of run {found.run} has another hash: {found.last.hash}",
            hint="read the plan again, and decide again",
        )
    if found.generation.acceptance != ACCEPTED:
        await _decide(context, caller, found, {"plan_acceptance": ACCEPTED})


@routes.add("POST", "/api/plans/{run}/comment", roles=DEVELOPER)
async def comment(found: FoundDesign, body: CommentBody, caller: Caller, context: Context) -> None:
    """Ask for another plan."""
    about = commented_part(body.text, body.part)
    answer = {"plan_acceptance": ADJUST, "about": about, "comments": body.text}
    await _decide(context, caller, found, answer)


@routes.add(
    "GET",
    "/api/plans/{run}/bundle.zip",
    roles=DEVELOPER,
    answer=bytes,
    media="application/zip",
)
async def download(package: FoundPackage) -> Response:
    """Download a package that was designed, as `POST /api/packages` accepts it.

    `package` is needed if the design has several.
    """
    return zip_answer(package.name, await asyncio.to_thread(_zip, package))


@routes.add("GET", "/api/plans/{run}/files", roles=DEVELOPER, answer=DesignedAnswer)
async def list_files(package: FoundPackage, caller: Caller, context: Context) -> object:
    """Return the files of a package that was designed, and what the checker says of it.

    `package` is needed if the design has several.
    """
    owner = await owner_of(context, caller, shared=False)
    found = await asyncio.to_thread(context.packages.review_files, owner, *package)
    return {
        "name": package.name,
        "items": [
            {"path": path, "size": len(content), "content": content.decode()}
            for path, content in sorted(package.files.items())
        ],
        "findings": [finding_data(finding) for finding in found],
    }


def _begin_with(plan: Mapping[str, Json], model: str | None) -> StartBody:
    """Return what starts a design with a plan; raises UsageError for one that is not valid."""
    found = read_plan("the request", json.dumps(plan))
    message = f"The plan is given: {found.strategy.workflow_name}"
    values = cast("Values", plan_values(found))
    return StartBody(workflow=GENERATOR, message=message, values=values, model=model)


def _zip(package: _Package) -> bytes:
    name, files = package
    with staged_folder(files, name) as folder:
        digest = read_package(folder).digest
    return pack_files(make_manifest(name, digest, files), files)


def _round(found: Round) -> RoundAnswer:
    return RoundAnswer(round=found.number, hash=found.hash)


async def _decide(
    context: ServerContext, caller: Principal, found: _Design, answer: Mapping[str, Json]
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
