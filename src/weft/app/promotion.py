"""Promotion: the packages of a generation take their place in a workspace, all of them or none.

What was generated last is kept beside the journal, so that what people have changed since can be
told from what another generation changes.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast

from weft.app.folders import make_folder
from weft.app.generation import read_plan
from weft.app.installation import linking_of, profile_of
from weft.environment import read_environment
from weft.errors import PackageError, UsageError
from weft.findings import Finding, is_error
from weft.generator.bundle import PLAN_FILE, TRACE_FILE, make_bundle, plain_drafts
from weft.generator.merge import merge_files
from weft.generator.plan import plan_hash
from weft.ids import AGENT_NAME, name_error, segment_error
from weft.packages.archive.importing import Comparison, compare
from weft.packages.archive.staging import create_folder, replace_all, replace_folder
from weft.packages.folder import read_files
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.packages.workspace import PACKAGES, PACKS

#: The folder of a workspace for its own things, and where in it generations are.
_OWN: Final = ".weft"
_GENERATED: Final = Path(_OWN) / "generated"
_BASE: Final = _GENERATED / "base"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one package, or of the file of a pack."""

    name: str
    folder: Path
    #: Where it is kept what was generated, without what people change.
    base: Path
    #: The files as generated, and as they are to be.
    generated: Mapping[str, bytes]
    files: Mapping[str, bytes]
    comparison: Comparison
    #: Files that keep what people have changed in them.
    edited: tuple[str, ...] = ()
    created: bool = False

    @property
    def is_package(self) -> bool:
        """Whether it is a package, which has a folder of its own; else the file of a pack."""
        return self.folder.name == self.name

    @property
    def place(self) -> Path:
        """The package, or the file of the pack."""
        return self.folder if self.is_package else self.folder / self.name


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a promotion would write, and everything that keeps it from being written."""

    changes: tuple[Change, ...]
    workspace: Path = Path()
    #: Where people and the generation have changed the same lines, as FILE:LINE with what is there.
    conflicts: tuple[str, ...] = ()
    #: What is in the way and was not generated here.
    strangers: tuple[Path, ...] = ()
    #: What is in the way and was generated here, from another plan.
    others: tuple[Path, ...] = ()
    #: What is wrong with the packages as they would be.
    errors: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it can be written."""
        return not (self.conflicts or self.strangers or self.others or self.errors)

    @property
    def packages(self) -> tuple[Change, ...]:
        """The packages, without the pack."""
        return tuple(change for change in self.changes if change.is_package)


def stage(bundle: Mapping[str, Any], workspace: Path, run: str) -> Path:
    """Write the packages of a run aside, where people can look at them, and return where."""
    files = {
        f"{name}/{path}": text.encode()
        for name, package in _packages(bundle).items()
        for path, text in package.items()
    }
    files |= {f"{PACKS}/{name}": text.encode() for name, text in _pack(bundle).items()}
    make_folder(workspace / _OWN, "generated packages")
    folder = workspace / _GENERATED / run
    if not folder.exists():
        create_folder(folder, files)
    elif read_files(folder).files != files:
        replace_folder(folder, files)
    return folder


def _packages(bundle: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the packages of a bundle; raises UsageError if a name could lead somewhere else."""
    packages = cast("dict[str, dict[str, str]]", bundle["packages"])
    for name, files in packages.items():
        if not AGENT_NAME.match(name) or segment_error(name):
            raise _unsafe_name_error(name, "is no name of a package")
        for path in files:
            if fault := name_error(path):
                raise _unsafe_name_error(f"{name}/{path}", fault)
    return packages


def _pack(bundle: Mapping[str, Any]) -> dict[str, str]:
    pack = cast("dict[str, str] | None", bundle.get("pack"))
    if pack is None:
        return {}
    if fault := segment_error(pack["file"]):
        raise _unsafe_name_error(pack["file"], fault)
    return {pack["file"]: pack["text"]}


def _unsafe_name_error(name: str, fault: str) -> UsageError:
    return UsageError(
        f"the generation has a file {name!r}, which {fault}; nothing was written",
        hint="look at how the Generator of this workspace names files",
    )


def prepare(bundle: Mapping[str, Any], folder: Path, workspace: Path, *, update: bool) -> Promotion:
    """Say what it takes to put packages into a folder; packs go into `packs` beside it.

    What was generated from another plan is in the way, unless it is to be updated all the same.
    """
    base = _base(folder, workspace)
    packages = _packages(bundle)
    planned = [
        _plan_change(name, folder / name, base / name, files) for name, files in packages.items()
    ]
    same = [
        name
        for name, files in packages.items()
        if any(_is_same_brief(place / name, files) for place in (base, folder))
    ]
    others = [folder / name for name in packages if name not in same]
    at = (workspace if folder.resolve() == workspace.resolve() else folder.parent) / PACKS
    for name, text in _pack(bundle).items():
        planned.append(_plan_change(name, at, base / PACKS, {name: text}, alone=True))
        # A pack is of the plan of its packages.
        others += [] if same else [at / name]
    strangers = tuple(plan.stranger for plan in planned if plan.stranger)
    promotion = Promotion(
        changes=tuple(plan.change for plan in planned if plan.change),
        workspace=workspace,
        conflicts=tuple(line for plan in planned for line in plan.conflicts),
        strangers=strangers,
        others=tuple(
            path for path in others if not update and path.exists() and path not in strangers
        ),
    )
    if not promotion.ok:
        return promotion
    errors = [error for change in promotion.packages for error in _errors(change, workspace)]
    return replace(promotion, errors=tuple(errors))


def _base(folder: Path, workspace: Path) -> Path:
    """Return where it is kept what was generated into a folder; each has a place of its own."""
    base, at = workspace / _BASE, os.path.relpath(folder.resolve(), workspace.resolve())
    return base if at == PACKAGES else base / blake2b(at.encode(), digest_size=6).hexdigest()


def _is_same_brief(base: Path, files: Mapping[str, str]) -> bool:
    """Tell whether what was generated last is for the same as the plan of these files says."""
    try:
        plan = (base / PLAN_FILE).read_bytes()
        return _purposes(plan) == _purposes(files[PLAN_FILE])
    except (OSError, KeyError, TypeError, ValueError):
        return False  # Nothing was, or people have made something else of it.


def _purposes(plan: str | bytes) -> list[str]:
    return [
        workflow["description"] for workflow in json.loads(plan)["PatternSelection"]["workflows"]
    ]


def is_promoted(bundle: Mapping[str, Any], workspace: Path) -> bool:
    """Tell whether packages have taken their place, and nothing was generated there since."""
    base = workspace / _BASE
    return all(
        any(_read_present(at / name, None) == _encode(files) for at in (base, *base.glob("*")))
        for name, files in _packages(bundle).items()
    )


def _encode(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


@dataclass(frozen=True, slots=True)
class _PlannedChange:
    change: Change | None = None
    conflicts: tuple[str, ...] = ()
    stranger: Path | None = None


def _plan_change(
    name: str, folder: Path, base: Path, files: Mapping[str, str], *, alone: bool = False
) -> _PlannedChange:
    """Plan one package; `alone`, its one file lies in a folder with others."""
    generated = _encode(files)
    place = folder / name if alone else folder
    if not (place.exists() or place.is_symlink()):
        new = compare({}, generated)
        return _PlannedChange(Change(name, folder, base, generated, generated, new, created=True))
    present = _read_present(folder, generated if alone else None)
    if present is None:
        return _PlannedChange(stranger=place)
    known = _read_present(base, generated if alone else None) or _as_planned(name, present)
    if not known and present != generated:
        return _PlannedChange(stranger=place)
    known = known or generated
    # What is no text is nobody's but the person's.
    mine = {path: text for path, raw in present.items() if (text := _text(raw)) is not None}
    mine |= {PLAN_FILE: files[PLAN_FILE]} if _is_same_plan(mine, files) else {}
    merged = merge_files({path: raw.decode() for path, raw in known.items()}, mine, files)
    if merged.conflicts:
        named = {
            place if alone else folder / path: conflict
            for path, conflict in merged.conflicts.items()
        }
        told = (f"{file}:{conflict.line}" for file, found in named.items() for conflict in found)
        return _PlannedChange(conflicts=tuple(told))
    others = {path: raw for path, raw in present.items() if path not in mine}
    texts = {**mine, **merged.written}
    kept = {path: text.encode() for path, text in texts.items() if path not in merged.removed}
    result = others | kept
    edited = tuple(
        sorted(
            path for path in present if path in generated and result.get(path) != generated[path]
        )
    )
    comparison = compare(present, result)
    return _PlannedChange(Change(name, folder, base, generated, result, comparison, edited))


def _as_planned(name: str, present: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return what the plan in a package gives, if it was made from that; for one made elsewhere."""
    try:
        plan = read_plan(PLAN_FILE, present[PLAN_FILE].decode())
        made_from = json.loads(present[TRACE_FILE])["plan"]
    except (KeyError, TypeError, ValueError, UsageError):
        return {}
    if made_from != plan_hash(plan):
        return {}
    return _encode(make_bundle(plan, plain_drafts(plan)).packages.get(name, {}))


def _read_present(folder: Path, only: Mapping[str, bytes] | None) -> dict[str, bytes] | None:
    """Return the files of a folder, or of them those that are named; None if that is no folder."""
    if folder.is_symlink() or not folder.is_dir():
        return None
    if only is not None:
        return {name: (folder / name).read_bytes() for name in only if (folder / name).is_file()}
    content = read_files(folder)
    if content.findings:
        raise PackageError(f"{folder} cannot be updated; nothing was changed", content.findings)
    return content.files


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _is_same_plan(mine: Mapping[str, str], generated: Mapping[str, str]) -> bool:
    """Tell whether the plan in a package is the one of this generation, however it is written."""
    if PLAN_FILE not in mine or PLAN_FILE not in generated:
        return False
    try:
        own, new = (read_plan(PLAN_FILE, files[PLAN_FILE]) for files in (mine, generated))
    except UsageError:
        return False
    return plan_hash(own) == plan_hash(new)


def _errors(change: Change, workspace: Path) -> Iterator[Finding]:
    """Check a package as it would be, beside the others, and name its files where they will be."""
    settings = read_environment()
    linking = linking_of(settings)
    with tempfile.TemporaryDirectory(
        prefix=".check-", dir=_nearest_existing(workspace.resolve())
    ) as name:
        apart = Path(name) / change.name
        create_folder(apart, change.files)
        findings = review_package(
            read_package(apart),
            profile=profile_of(settings),
            kinds=linking.kinds,
            suppressed=linking.suppressed,
        )
        for finding in filter(is_error, findings):
            file = finding.place.file.replace(str(apart), str(change.folder), 1)
            yield replace(finding, place=replace(finding.place, file=file))


def _nearest_existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.is_dir())


def promote(promotion: Promotion) -> None:
    """Write what was prepared; if anything fails, every package stays as it was.

    What was generated is kept before a new package appears, and after one that was there has
    changed: whoever is stopped in between can do it again.
    """
    fresh = [change for change in promotion.packages if change.created]
    others = [change for change in promotion.changes if change not in fresh]
    made: list[Path] = []
    try:
        for change in fresh:
            _keep_base(change, promotion.workspace)
            create_folder(change.folder, change.files)
            made.append(change.folder)
        replace_all(dict(written for change in others for written in _files_to_write(change)))
    except BaseException:
        for folder in made:
            shutil.rmtree(folder)
        raise
    for change in others:
        for path in change.comparison.removed:
            (change.folder / path).unlink()
        _keep_base(change, promotion.workspace)


def _files_to_write(change: Change) -> Iterator[tuple[Path, bytes]]:
    for path in (*change.comparison.added, *change.comparison.changed):
        yield change.folder / path, change.files[path]


def _keep_base(change: Change, workspace: Path) -> None:
    kept = read_files(change.base).files if change.base.is_dir() else {}
    if not change.is_package:
        kept = {}  # Files of other packs lie there as well.
    workspace.mkdir(parents=True, exist_ok=True)
    make_folder(workspace / _OWN, "generated packages")
    replace_all({change.base / path: raw for path, raw in change.generated.items()})
    for path in kept.keys() - change.generated.keys():
        with suppress(FileNotFoundError):
            (change.base / path).unlink()
