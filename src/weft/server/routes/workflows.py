"""Workflows: what can be run, its health, drawings and sources."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Final, Literal, NotRequired, TypeAlias

from fastapi import Depends, Path, Query
from fastapi.responses import Response
from pydantic import Field, JsonValue, StringConstraints
from pydantic_core import from_json
from typing_extensions import TypedDict

from weft.app.workflows import WorkspaceWorkflows
from weft.diagrams import draw
from weft.engine.conversation.routing import startup_mode
from weft.errors import CheckFailed, NotFoundError, PackageError, UsageError
from weft.findings import Json, is_error
from weft.runtime.workflow import unpack
from weft.server.answers import FindingAnswer, page_of
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, KNOWN, STAFF, Principal
from weft.server.package_changes import Change, PackageFile, PackagePlace, Reviewed
from weft.server.parameters import PRINTABLE, Body
from weft.server.routing import Caller, Context, Routes, json_answer
from weft.server.starts.forms import start_schema
from weft.spec.workflow import WorkflowSpec, plain
from weft.wire.findings import finding_data

routes: Final = Routes("workflows")

NamePath = Annotated[str, Path(min_length=1, max_length=200, pattern=PRINTABLE)]
DigestPath = Annotated[str, Path(min_length=1, max_length=300, pattern=PRINTABLE)]
FilePath = Annotated[str, Path(min_length=1, max_length=500, pattern=PRINTABLE)]
DryRun = Annotated[bool, Query(description="Only say what would be changed.")]
Force = Annotated[bool, Query(description="Do it although something is lost or has errors.")]


class HealthAnswer(TypedDict):
    """What the checker says of a package as it is now."""

    errors: int
    warnings: int
    #: Why starts use an earlier version; null if they do not.
    problem: str | None


class WorkflowAnswer(TypedDict):
    """A workflow that can be run. End users get the fields that are required."""

    name: str
    description: str
    kind: Literal["conversation", "flow", "board"]
    startup_mode: str
    initiated_by: str
    trigger: str
    agents: NotRequired[list[str]]
    digest: NotRequired[str]
    #: own: of the caller's tenant; shared: of all tenants; shipped: it comes with Weft.
    owner: NotRequired[Literal["own", "shared", "shipped"]]
    health: NotRequired[HealthAnswer]
    #: Only where one workflow is asked for: the JSON Schema of the form or state that it begins
    #: with, null where it begins otherwise; and for developers what the package declares.
    start: NotRequired[dict[str, JsonValue] | None]
    spec: NotRequired[dict[str, JsonValue]]


class PackedAnswer(TypedDict):
    """A workflow as it was at a time: its spec, and its code by path."""

    name: str
    digest: str
    spec: dict[str, JsonValue]
    code: dict[str, str]


class FindingsAnswer(HealthAnswer):
    """The findings of a package."""

    findings: list[FindingAnswer]


class DiagramAnswer(TypedDict):
    """A drawing of a workflow."""

    kind: str
    format: str
    text: str


class ContentAnswer(TypedDict):
    """A file with its content; null if it is not UTF-8 text."""

    path: str
    size: int
    digest: str
    content: str | None


class PackageChangeAnswer(TypedDict):
    """What was changed in a package, or would be, and what the checker says of it then."""

    name: str
    written: bool
    created: bool
    added: list[str]
    changed: list[str]
    removed: list[str]
    #: Files with changes made here that an import replaces.
    lost: list[str]
    #: A unified diff.
    diff: str
    old_digest: str | None
    new_digest: str
    findings: list[FindingAnswer]
    #: The fixes that were applied, in words.
    fixed: list[str]


class FileBody(Body):
    """The new content of a file, and the digest of the present one; null for a new file."""

    content: Annotated[str, StringConstraints(max_length=1024 * 1024)]
    digest: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None


class FixesBody(Body):
    """The codes, or beginnings of codes, of the findings to fix; none: all that can be."""

    codes: list[Annotated[str, StringConstraints(pattern="^[A-Z]{1,20}[0-9]{0,4}$")]] = Field(
        default=[], max_length=200
    )


async def find_place(name: NamePath, caller: Caller, context: Context) -> PackagePlace:
    """Return the package that the caller knows by a name; raises NotFoundError."""
    return await asyncio.to_thread(context.packages.place, caller.app, name)


#: The package that a path names.
FoundPlace: TypeAlias = Annotated[PackagePlace, Depends(find_place)]


async def _review(place: FoundPlace, context: Context) -> Reviewed:
    return await asyncio.to_thread(context.packages.reviewed, place)


async def require_own(place: FoundPlace, caller: Caller, context: Context) -> PackagePlace:
    """Return a package that the caller may edit; raises UsageError for one of others."""
    if place.is_shipped:
        raise UsageError(
            f"{place.name} comes with Weft", hint="install your own: POST /api/packages"
        )
    if place.owner == caller.app or await context.may_change_shared_packages(caller):
        return place
    raise UsageError(
        f"{place.name} belongs to all tenants",
        hint="install a copy of your own: POST /api/packages",
    )


#: Its content and findings; and the package, if the caller may edit it.
FoundReview: TypeAlias = Annotated[Reviewed, Depends(_review)]
OwnPlace: TypeAlias = Annotated[PackagePlace, Depends(require_own)]


@routes.add("GET", "/api/workflows", roles=KNOWN, answer=page_of(WorkflowAnswer))
async def list_workflows(caller: Caller, context: Context) -> object:
    """List the workflows that the caller can run, with their health for developers."""
    packages = context.packages

    def all_reviewed() -> list[tuple[PackagePlace, Reviewed]]:
        places = sorted(packages.all_of(caller.app).values(), key=lambda place: place.name)
        return [(place, packages.reviewed(place)) for place in places]

    found = await asyncio.to_thread(all_reviewed)
    return [_row(context, caller, place, reviewed) for place, reviewed in found]


@routes.add("GET", "/api/workflows/{name}@{digest}", roles=DEVELOPER, answer=PackedAnswer)
async def show_packed(
    name: NamePath, digest: DigestPath, caller: Caller, context: Context
) -> Response:
    """Return a workflow by its digest: the present one, or one that runs were started with."""
    packed = await _packed(context, caller, name, digest)
    content: dict[str, Json] = from_json(packed)
    answer = json_answer({"name": name, "digest": digest, **content})
    answer.headers["cache-control"] = "private, max-age=31536000, immutable"
    return answer


@routes.add("GET", "/api/workflows/{name}", roles=KNOWN, answer=WorkflowAnswer)
async def show_workflow(
    place: FoundPlace, reviewed: FoundReview, caller: Caller, context: Context
) -> object:
    """Return a workflow as it is now; its spec for developers."""
    row = _row(context, caller, place, reviewed)
    row["start"] = start_schema(reviewed.spec)
    if caller.has(DEVELOPER):
        row["spec"] = plain(reviewed.spec)
    return row


@routes.add("GET", "/api/workflows/{name}/findings", roles=STAFF, answer=FindingsAnswer)
async def show_findings(place: FoundPlace, reviewed: FoundReview, context: Context) -> object:
    """Return what the checker says of a package."""
    findings = [finding_data(finding) for finding in reviewed.findings]
    return {**_health(context, place, reviewed), "findings": findings}


@routes.add("GET", "/api/workflows/{name}/diagram", roles=STAFF, answer=DiagramAnswer)
async def show_diagram(
    place: FoundPlace,
    reviewed: FoundReview,
    kind: Literal["graph", "sequence"] = "graph",
    format: Literal["mermaid", "ascii"] = "mermaid",  # noqa: A002 - the name of the parameter
) -> object:
    """Draw a workflow."""
    unread = tuple(
        finding
        for finding in reviewed.findings
        if is_error(finding) and finding.code.startswith("SCHEMA")
    )
    if unread:
        raise PackageError(f"{place.name} cannot be drawn: it cannot be read", unread)
    text = await asyncio.to_thread(draw, reviewed.spec, kind=kind, form=format)
    return {"kind": kind, "format": format, "text": text}


@routes.add(
    "GET",
    "/api/workflows/{name}/files",
    roles=DEVELOPER,
    answer=page_of(PackageFile, "FilesAnswer"),
)
async def list_files(place: FoundPlace, context: Context) -> object:
    """List the files of a package."""
    return await asyncio.to_thread(context.packages.files, place)


@routes.add("GET", "/api/workflows/{name}/files/{path:path}", roles=DEVELOPER, answer=ContentAnswer)
async def show_file(place: FoundPlace, path: FilePath, context: Context) -> object:
    """Return the content of a file."""
    file, raw = await asyncio.to_thread(context.packages.file, place, path)
    return {**asdict(file), "content": _text(raw)}


@routes.add(
    "PUT", "/api/workflows/{name}/files/{path:path}", roles=DEVELOPER, answer=PackageChangeAnswer
)
async def write_file(
    place: OwnPlace,
    path: FilePath,
    body: FileBody,
    caller: Caller,
    context: Context,
    *,
    dry_run: DryRun = False,
    force: Force = False,
) -> object:
    """Write a file whose present content has the digest; 409 if it has another one.

    An edit that gives errors to a package without any is refused, unless `force`: starts then use
    the last good version.
    """
    return shown_change(
        await context.packages.write_file(
            place, path, body.content, body.digest, caller.user, dry_run=dry_run, force=force
        )
    )


@routes.add("POST", "/api/workflows/{name}/fixes", roles=DEVELOPER, answer=PackageChangeAnswer)
async def fix(
    place: OwnPlace,
    caller: Caller,
    context: Context,
    body: FixesBody | None = None,
    *,
    dry_run: DryRun = False,
) -> object:
    """Apply the safe fixes of a package."""
    codes = tuple((body or FixesBody()).codes)
    return shown_change(await context.packages.fix(place, codes, caller.user, dry_run=dry_run))


def shown_change(change: Change) -> dict[str, object]:
    """Return what was changed in a package, as an answer."""
    done = {name: getattr(change.done, name) for name in _OF_IMPORT}
    findings = [finding_data(finding) for finding in change.done.findings]
    return {**done, "findings": findings, "written": change.written, "fixed": change.fixed}


#: What is answered of an import as it is.
_OF_IMPORT: Final = PackageChangeAnswer.__annotations__.keys() - {"findings", "written", "fixed"}


async def _packed(context: ServerContext, caller: Principal, name: str, digest: str) -> bytes:
    """Return a workflow with a digest, as it is now or as runs have it; raises NotFoundError."""
    missing = f"there is no workflow {name} with the digest {digest}"
    with suppress(NotFoundError):  # One that was removed; runs may have it still.
        place = await find_place(name, caller, context)
        if (await _review(place, context)).digest == digest:
            return await asyncio.to_thread(context.packages.packed, place)
    try:
        packed = await context.host.package(digest, app=caller.app)
    except NotFoundError:
        raise NotFoundError(missing) from None
    spec, _ = unpack(packed)
    if spec.orchestrator.workflow_name != name:
        raise NotFoundError(missing)
    return packed


def _row(
    context: ServerContext, caller: Principal, place: PackagePlace, reviewed: Reviewed
) -> WorkflowAnswer:
    orchestrator = reviewed.spec.orchestrator
    row = WorkflowAnswer(
        name=place.name,
        description=orchestrator.description,
        kind=_kind(reviewed.spec),
        startup_mode=startup_mode(orchestrator),
        initiated_by=orchestrator.initiated_by,
        trigger=orchestrator.trigger.type,
    )
    if caller.has(STAFF):
        row["agents"] = [agent.agent_name for agent in reviewed.spec.agents]
        row["digest"] = reviewed.digest
        row["owner"] = (
            "shipped" if place.is_shipped else "own" if place.owner == caller.app else "shared"
        )
        row["health"] = _health(context, place, reviewed)
    return row


def _kind(spec: WorkflowSpec) -> Literal["conversation", "flow", "board"]:
    if spec.board is not None:
        return "board"
    return "conversation" if spec.flow is None else "flow"


def _health(context: ServerContext, place: PackagePlace, reviewed: Reviewed) -> HealthAnswer:
    find = context.host.find
    problem = find.problem(place.folder) if isinstance(find, WorkspaceWorkflows) else None
    text = problem.message if isinstance(problem, CheckFailed) else problem and str(problem)
    return HealthAnswer(
        errors=reviewed.errors,
        warnings=reviewed.warnings,
        problem=text and context.folders.hide(text),
    )


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
