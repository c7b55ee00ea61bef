"""Offers of the Generator: what was designed and is not installed, and what its checks found."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

from fastapi import Depends
from fastapi.responses import Response
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from weft.app.promotion import bundle_packages, stage, staged_bundle
from weft.app.staged import staged_offer
from weft.errors import ConflictError, NotFoundError, PackageError, StoreError, UsageError
from weft.findings import Json
from weft.ids import segment_error
from weft.packages.archive.exporting import make_manifest, pack_files
from weft.packages.archive.staging import staged_folder
from weft.packages.reader import read_package
from weft.server.answers import FindingAnswer
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER
from weft.server.parameters import Body, NameFilter
from weft.server.routes.packages import owner_of, zip_answer
from weft.server.routes.plans import Design, FoundDesign
from weft.server.routing import Caller, Context, Routes
from weft.wire.findings import finding_data

routes: Final = Routes("plans")

#: The records of offers that were checked again.
_CHECKS: Final = "offer_checks"

#: What another check may find otherwise.
_CHECKED: Final = ("promotable", "errors", "questions", "scenarios")

#: A folder beside those of generations: no run is staged there.
_TAKEN: Final = "base"

Reason = Annotated[str, StringConstraints(max_length=2_000, pattern=r"\S")]


class AnswersBody(Body):
    """Why differences from the plan are meant, by their keys."""

    answers: dict[str, Reason] = Field(default_factory=dict, max_length=200)


class LeftOutAnswer(TypedDict):
    """A piece of a model's work that is not in the package."""

    file: str
    piece: str
    reason: str


class QuestionAnswer(TypedDict):
    """A difference from the plan, and why it is meant; null as long as no reason was given."""

    key: str
    text: str
    answer: str | None


class PlanScenarioAnswer(TypedDict):
    """A scenario of the plan, run with stand-ins for the tools."""

    package: str
    name: str
    differences: list[str]
    #: The tools whose code decides whether it passes; it is run after the installation.
    rests_on: list[str]


class OfferAnswer(TypedDict):
    """What a design has made, and what the checks found; what was left out comes first."""

    promotable: bool
    #: The folder of packages with findings, in the workspace of the server; files in it can be
    #: repaired.
    folder: str | None
    #: Why the packages are a skeleton; empty if they are not.
    skeleton: list[str]
    left_out: list[LeftOutAnswer]
    errors: list[str]
    questions: list[QuestionAnswer]
    scenarios: list[PlanScenarioAnswer]
    checked: list[str]


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


class _Package(NamedTuple):
    """A package that was designed."""

    name: str
    files: dict[str, bytes]


async def _find_offered(found: FoundDesign) -> Design:
    """Return a design that has packages; raises ConflictError if it has none yet."""
    if not found.generation.bundle:
        raise ConflictError(f"run {found.run} has no package yet", hint="approve its plan first")
    return found


#: The design that a path names, if it has packages.
OfferedDesign: TypeAlias = Annotated[Design, Depends(_find_offered)]


async def _find_package(
    found: OfferedDesign, context: Context, package: NameFilter = None
) -> _Package:
    """Return a package that was designed; its name is needed if there are several."""
    packages = await asyncio.to_thread(_packages, context, found)
    names = ", ".join(packages)
    if package is None and len(packages) > 1:
        raise UsageError(
            f"run {found.run} has several packages", hint=f"add ?package= and one of {names}"
        )
    name = package or next(iter(packages))
    if name not in packages:
        raise NotFoundError(f"run {found.run} has no package {name}", hint=f"it has {names}")
    return _Package(name, {path: text.encode() for path, text in packages[name].items()})


#: One of the packages of the design that a path names.
FoundPackage: TypeAlias = Annotated[_Package, Depends(_find_package)]


@routes.add("GET", "/api/plans/{run}/offer", roles=DEVELOPER, answer=OfferAnswer)
async def show_offer(found: OfferedDesign, caller: Caller, context: Context) -> object:
    """Return what the checks found in the packages of a design.

    Packages with findings are written to a folder, where they can be repaired.
    """
    folder = await asyncio.to_thread(_staged, context, found)
    known = await context.records.record(caller.app, _CHECKS, found.run)
    check: Mapping[str, Any] = known.value if known else {}
    if folder and check and check.get("digest") != await asyncio.to_thread(_digest, found, folder):
        check = {}  # The files have changed since.
    return _offer(context, found, folder, check)


@routes.add("POST", "/api/plans/{run}/offer", roles=DEVELOPER, answer=OfferAnswer)
async def check_offer(
    found: OfferedDesign, body: AnswersBody, caller: Caller, context: Context
) -> object:
    """Check packages with findings again, as they are in their folder.

    `answers` say why differences from the plan are meant. Without errors and with every difference
    answered, the packages can be installed.
    """
    folder = await asyncio.to_thread(_staged, context, found)
    if folder is None:
        raise ConflictError(
            f"there is nothing to check again in the packages of run {found.run}",
            hint="they can be installed as they are",
        )
    plan, bundle = found.generation.rounds[-1].plan, found.generation.bundle
    known = await context.records.record(caller.app, _CHECKS, found.run)
    answers = {**cast("dict[str, str]", known.value["answers"] if known else {}), **body.answers}
    digest = await asyncio.to_thread(_digest, found, folder)
    offer = await asyncio.to_thread(lambda: staged_offer(plan, bundle, folder, answers))
    data = {key: offer.data()[key] for key in _CHECKED}
    check: dict[str, Json] = {
        **data,
        "summary": offer.summary(),
        "answers": answers,
        "digest": digest,
    }
    await context.records.put_record(caller.app, _CHECKS, found.run, check)
    return _offer(context, found, folder, check)


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


def _staged(context: ServerContext, found: Design) -> Path | None:
    """Return the folder of packages with findings; None for others, and if it cannot be written."""
    name = found.run
    if found.generation.is_promotable or segment_error(name) or name == _TAKEN:
        return None
    for _ in range(2):  # Another request may write it at the same time.
        with suppress(OSError, StoreError, PackageError):
            return stage(found.generation.bundle, context.workspace, name)
    return None


def _digest(found: Design, folder: Path) -> str:
    """Return the digest of all packages in a folder."""
    packages = bundle_packages(staged_bundle(found.generation.bundle, folder))
    return sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()


def _packages(context: ServerContext, found: Design) -> dict[str, dict[str, str]]:
    """Return the files of all packages, with the repairs of people."""
    bundle, folder = found.generation.bundle, _staged(context, found)
    return bundle_packages(bundle if folder is None else staged_bundle(bundle, folder))


def _offer(
    context: ServerContext, found: Design, folder: Path | None, check: Mapping[str, Any]
) -> OfferAnswer:
    """Return what the checks of the run found, or the last check of the folder."""
    generation = found.generation
    bundle: Mapping[str, Any] = {**generation.bundle, **check}
    return OfferAnswer(
        promotable=bundle["promotable"],
        folder=None if folder is None else folder.relative_to(context.workspace).as_posix(),
        skeleton=list(generation.skeleton),
        left_out=bundle["left_out"],
        errors=bundle["errors"],
        questions=bundle["questions"],
        scenarios=[
            PlanScenarioAnswer(package=name, **run)
            for name, runs in bundle["scenarios"].items()
            for run in runs
        ],
        checked=bundle["summary"]["checked"],
    )


def _zip(package: _Package) -> bytes:
    name, files = package
    with staged_folder(files, name) as folder:
        digest = read_package(folder).digest
    return pack_files(make_manifest(name, digest, files), files)
