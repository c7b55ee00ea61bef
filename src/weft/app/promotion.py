"""Promotion: writes the packages of a generation to a workspace, all of them or none.

The last generated files are stored beside the journal, so that changes by people can be
distinguished from those of another generation.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
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
from weft.generator.bundle import PLAN_FILE, TRACE_FILE, make_bundle
from weft.generator.compile.compiler import compile_drafts
from weft.generator.merge import Versions, keep_unchanged, merge_files
from weft.generator.plans.plan import plan_hash
from weft.ids import AGENT_NAME, name_error, segment_error
from weft.packages.archive.importing import Comparison, compare
from weft.packages.archive.staging import create_folder, replace_all
from weft.packages.folder import read_files
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.packages.workspace import PACKAGES, PACKS
from weft.spec.plan import ActionPlan

#: The folder of Weft's files in a workspace, and the folder of generations in it.
_OWN: Final = ".weft"
_GENERATED: Final = Path(_OWN) / "generated"
_BASE: Final = _GENERATED / "base"

#: The file of a staging folder with everything that the checks found.
REPORT_FILE: Final = "findings.md"


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of one package, or of the file of a pack."""

    name: str
    folder: Path
    #: The folder of the generated files, without changes by people.
    base: Path
    #: The files as generated, and as they will be written.
    generated: Mapping[str, bytes]
    files: Mapping[str, bytes]
    comparison: Comparison
    #: Files that keep changes by people.
    edited: tuple[str, ...] = ()
    created: bool = False

    @property
    def is_package(self) -> bool:
        """Whether it is a package with its own folder, or else the file of a pack."""
        return self.folder.name == self.name

    @property
    def place(self) -> Path:
        """The package, or the file of the pack."""
        return self.folder if self.is_package else self.folder / self.name


@dataclass(frozen=True, slots=True)
class Promotion:
    """The changes of a promotion, and everything that prevents it."""

    changes: tuple[Change, ...]
    workspace: Path = Path()
    #: Lines that both people and the generation have changed, as FILE:LINE with the text.
    conflicts: tuple[str, ...] = ()
    #: Existing packages that were not generated here.
    strangers: tuple[Path, ...] = ()
    #: Existing packages that were generated here from another plan.
    others: tuple[Path, ...] = ()
    #: The errors of the resulting packages.
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
    """Write the packages of a run to a staging folder, and return it.

    A folder that exists is not changed: people may have repaired the packages in it.
    """
    files = {
        f"{name}/{path}": text.encode()
        for name, package in bundle_packages(bundle).items()
        for path, text in package.items()
    }
    files |= {f"{PACKS}/{name}": text.encode() for name, text in _pack(bundle).items()}
    files[REPORT_FILE] = str(bundle.get("report") or "").encode()
    make_folder(workspace / _OWN, "generated packages")
    folder = workspace / _GENERATED / run
    if not folder.exists():
        create_folder(folder, files)
    return folder


def staged_bundle(bundle: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a bundle with the packages as they are in its staging folder, with hand repairs."""
    packages = {
        name: {
            path: text
            for path, raw in (_read_present(folder / name, None) or {}).items()
            if (text := _text(raw)) is not None
        }
        for name in bundle_packages(bundle)
    }
    return {**bundle, "packages": packages}


def bundle_packages(bundle: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the packages of a bundle; raises UsageError for a name that is not safe."""
    packages = cast("dict[str, dict[str, str]]", bundle["packages"])
    for name, files in packages.items():
        if not AGENT_NAME.match(name) or segment_error(name):
            raise _unsafe_name_error(name, "is not a package name")
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
        hint="check how the Generator of this workspace names files",
    )


def prepare(
    bundle: Mapping[str, Any],
    folder: Path,
    workspace: Path,
    *,
    update: bool,
    plan_given: bool = False,
) -> Promotion:
    """Plan the promotion of packages to a folder; packs go into `packs` beside it.

    A package that was generated from another plan is a conflict unless `update` is set. A plan that
    was given, also as a form, may be a changed one. What does not depend on a change of its plan
    stays as it was generated last, if the result has no errors.
    """
    is_same = (_is_same_brief, _is_changed_plan) if plan_given else (_is_same_brief,)
    same = [
        name
        for name, files in bundle_packages(bundle).items()
        for place in (_base(folder, workspace) / name, folder / name)
        if any(check(place, files) for check in is_same)
    ]
    kept = _prepare(bundle, folder, workspace, None if update else same, keep=True)
    if not kept.errors:
        return kept
    replaced = _prepare(bundle, folder, workspace, None if update else same, keep=False)
    return replaced if replaced.ok else kept


def _prepare(
    bundle: Mapping[str, Any],
    folder: Path,
    workspace: Path,
    same: Collection[str] | None,
    *,
    keep: bool,
) -> Promotion:
    """Plan a promotion; `same` are the packages that may be updated, None means all."""
    base = _base(folder, workspace)
    packages = bundle_packages(bundle)
    planned = [
        _plan_change(name, folder / name, base / name, files, keep=keep)
        for name, files in packages.items()
    ]
    others = [folder / name for name in packages if same is not None and name not in same]
    at = (workspace if folder.resolve() == workspace.resolve() else folder.parent) / PACKS
    for name, text in _pack(bundle).items():
        planned.append(_plan_change(name, at, base / PACKS, {name: text}, alone=True))
        # A pack has the plan of its packages.
        others += [] if same or same is None else [at / name]
    strangers = tuple(plan.stranger for plan in planned if plan.stranger)
    promotion = Promotion(
        changes=tuple(plan.change for plan in planned if plan.change),
        workspace=workspace,
        conflicts=tuple(line for plan in planned for line in plan.conflicts),
        strangers=strangers,
        others=tuple(path for path in others if path.exists() and path not in strangers),
    )
    if not promotion.ok:
        return promotion
    errors = [error for change in promotion.packages for error in _errors(change, workspace)]
    return replace(promotion, errors=tuple(errors))


def _base(folder: Path, workspace: Path) -> Path:
    """Return the folder of the files that were generated for an output folder."""
    base, at = workspace / _BASE, os.path.relpath(folder.resolve(), workspace.resolve())
    return base if at == PACKAGES else base / blake2b(at.encode(), digest_size=6).hexdigest()


def _is_same_brief(base: Path, files: Mapping[str, str]) -> bool:
    """Return whether the last generated files have the same brief as these."""
    try:
        plan = (base / PLAN_FILE).read_bytes()
        return _purposes(plan) == _purposes(files[PLAN_FILE])
    except (OSError, KeyError, TypeError, ValueError):
        return False  # Nothing was generated, or people have replaced it.


def _purposes(plan: str | bytes) -> list[str]:
    return [
        workflow["description"] for workflow in json.loads(plan)["PatternSelection"]["workflows"]
    ]


def _is_changed_plan(base: Path, files: Mapping[str, str]) -> bool:
    """Return whether these files have a step of the last generated plan, with the same task."""
    try:
        plan = (base / PLAN_FILE).read_bytes()
        return not _tasks(plan).isdisjoint(_tasks(files[PLAN_FILE]))
    except (OSError, KeyError, TypeError, ValueError):
        return False


def _tasks(plan: str | bytes) -> set[tuple[str, str]]:
    """Return the modules of a plan without their numbers."""
    modules = json.loads(plan)["WorkflowStrategy"]["modules"]
    return {
        (module["module_name"].partition(": ")[2], module["module_description"])
        for module in modules
    }


def is_promoted(bundle: Mapping[str, Any], workspace: Path) -> bool:
    """Return whether packages were promoted, and nothing was generated there from another plan."""
    base = workspace / _BASE
    return all(
        any(
            (_read_present(at / name, None) or {}).get(PLAN_FILE) == files[PLAN_FILE].encode()
            for at in (base, *base.glob("*"))
        )
        for name, files in bundle_packages(bundle).items()
    )


def _encode(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


@dataclass(frozen=True, slots=True)
class _PlannedChange:
    change: Change | None = None
    conflicts: tuple[str, ...] = ()
    stranger: Path | None = None


def _plan_change(
    name: str,
    folder: Path,
    base: Path,
    files: Mapping[str, str],
    *,
    alone: bool = False,
    keep: bool = False,
) -> _PlannedChange:
    """Plan the change of one package; with `alone`, its file shares the folder with others."""
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
    if keep:
        files = _unchanged_kept(name, known, files)
        generated = _encode(files)
    # Files that are not text belong to the person.
    mine = {path: text for path, raw in present.items() if (text := _text(raw)) is not None}
    mine |= {PLAN_FILE: files[PLAN_FILE]} if _is_same_plan(mine, files) else {}
    merged = merge_files({path: raw.decode() for path, raw in known.items()}, mine, files)
    if merged.conflicts:
        named = {
            place if alone else folder / path: conflict
            for path, conflict in merged.conflicts.items()
        }
        places = (f"{file}:{conflict.line}" for file, found in named.items() for conflict in found)
        return _PlannedChange(conflicts=tuple(places))
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


def _unchanged_kept(
    name: str, base: Mapping[str, bytes], files: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the files with what the change of the plan does not concern as it was generated."""
    try:
        plans = [
            read_plan(PLAN_FILE, text) for text in (base[PLAN_FILE].decode(), files[PLAN_FILE])
        ]
    except (KeyError, UnicodeDecodeError, UsageError):
        return files  # A pack, or the plan was replaced.
    old, new = (_compiled(plan).get(name, {}) for plan in plans)
    texts = {path: raw.decode() for path, raw in base.items()}
    about = {path: files[path] for path in (PLAN_FILE, TRACE_FILE)}
    return {**keep_unchanged(Versions(texts, files, old, new)), **about}


def _compiled(plan: ActionPlan) -> Mapping[str, Mapping[str, str]]:
    return make_bundle(plan, compile_drafts(plan)).packages


def _as_planned(name: str, present: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that the plan in a package generates; for packages made elsewhere."""
    try:
        plan = read_plan(PLAN_FILE, present[PLAN_FILE].decode())
        made_from = json.loads(present[TRACE_FILE])["plan"]
    except (KeyError, TypeError, ValueError, UsageError):
        return {}
    if made_from != plan_hash(plan):
        return {}
    return _encode(_compiled(plan).get(name, {}))


def _read_present(folder: Path, only: Mapping[str, bytes] | None) -> dict[str, bytes] | None:
    """Return the files of a folder, or only the named ones; None if it is not a folder."""
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
    """Return whether the plan in a package equals that of this generation."""
    if PLAN_FILE not in mine or PLAN_FILE not in generated:
        return False
    try:
        own, new = (read_plan(PLAN_FILE, files[PLAN_FILE]) for files in (mine, generated))
    except UsageError:
        return False
    return plan_hash(own) == plan_hash(new)


def _errors(change: Change, workspace: Path) -> Iterator[Finding]:
    """Check a package as it would be written, with the paths it will have."""
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
    """Write the planned changes; if anything fails, no package is changed.

    The generated files are stored before a new package appears, and after an existing one has
    changed, so that an interrupted promotion can be repeated.
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
        kept = {}  # The folder contains files of other packs.
    workspace.mkdir(parents=True, exist_ok=True)
    make_folder(workspace / _OWN, "generated packages")
    replace_all({change.base / path: raw for path, raw in change.generated.items()})
    for path in kept.keys() - change.generated.keys():
        with suppress(FileNotFoundError):
            (change.base / path).unlink()
