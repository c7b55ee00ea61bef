"""Reading and checking together: everything there is to say about packages on disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weft.check.rules.secrets import why_not_read
from weft.check.run import Examination, examine, sort_findings
from weft.check.subject import Profile, Subject
from weft.check.workspace import WorkspaceSubject, check_workspace
from weft.engine.variables.trigger_index import NO_KINDS, TriggerKinds
from weft.errors import CheckFailed
from weft.findings import Finding, Place, is_error
from weft.findings import Path as SpecPath
from weft.packages.reader import Package, read_package
from weft.packages.workspace import (
    PackFile,
    find_packages,
    is_package,
    read_packs,
    unchecked_packages,
)
from weft.spec.orchestrator import Orchestrator
from weft.spec.variables import FileSource
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class PackageSummary:
    """A package that was checked, without its files: a workspace may have thousands."""

    folder: Path
    name: str
    orchestrator: Orchestrator
    files: int
    #: Whether its runs were explored; errors about names and conditions keep them from being so.
    explored: bool = True


@dataclass(frozen=True)
class Review:
    """What was found in a package or workspace."""

    packages: tuple[PackageSummary, ...]
    findings: tuple[Finding, ...]
    files: int

    @property
    def ok(self) -> bool:
        return not any(is_error(finding) for finding in self.findings)


def review_package(
    package: Package,
    *,
    profile: Profile = "development",
    kinds: TriggerKinds = NO_KINDS,
    suppressed: frozenset[str] = frozenset(),
) -> tuple[Finding, ...]:
    """Return all findings of one package: of reading it, and of the rules."""
    return examine_package(package, profile=profile, kinds=kinds, suppressed=suppressed).findings


def examine_package(
    package: Package,
    *,
    profile: Profile = "development",
    kinds: TriggerKinds = NO_KINDS,
    suppressed: frozenset[str] = frozenset(),
    is_installed: Callable[[str], bool] | None = None,
    model_providers: frozenset[str] | None = None,
) -> Examination:
    """Apply all rules to one package; its findings include those of reading it."""
    subject = Subject(
        spec=package.spec,
        folder=package.folder.resolve().name,
        # A byte order mark at the beginning is not part of the text; Python ignores it too.
        code={name: raw.decode("utf-8-sig") for name, raw in package.code.items()},
        profile=profile,
        kinds=kinds,
        suppressed=suppressed,
        files=_files_read(package),
        is_installed=is_installed,
        model_providers=model_providers,
    )
    examined = examine(subject, locate=package.locate, broken=package.broken)
    placed = (_with_full_path(finding, package) for finding in examined.findings)
    return replace(examined, findings=sort_findings([*package.findings, *placed]))


def refuse_errors(
    package: Package,
    *,
    profile: Profile = "development",
    kinds: TriggerKinds = NO_KINDS,
    suppressed: frozenset[str] = frozenset(),
) -> None:
    """Raise CheckFailed if something keeps a package from running; a traceback shows all of it."""
    said = review_package(package, profile=profile, kinds=kinds, suppressed=suppressed)
    errors = tuple(finding for finding in said if is_error(finding))
    if not errors:
        return
    count = f"{len(errors)} error{'s' if len(errors) > 1 else ''}"
    name = package.folder.resolve().name
    refusal = CheckFailed(f"the package {name} has {count} and cannot run", errors)
    for error in errors:
        refusal.add_note(f"{error.place}: {error.code} {error.message}")
    raise refusal


def _ignore_progress(_done: int, _total: int) -> None:
    return


def review(
    path: Path,
    *,
    profile: Profile = "development",
    kinds: TriggerKinds = NO_KINDS,
    suppressed: frozenset[str] = frozenset(),
    on_package: Callable[[int, int], None] = _ignore_progress,
    is_installed: Callable[[str], bool] | None = None,
    model_providers: frozenset[str] | None = None,
) -> Review:
    """Read and check a package, or a workspace with all its packages and packs.

    `on_package` is told after each package how many of how many are done. `is_installed` tells of
    modules that packages refer to, and `model_providers` are the names that models may begin with.
    """
    packages: list[PackageSummary] = []
    said: list[Finding] = []
    folders = find_packages(path)
    for folder in folders:
        package = read_package(folder)
        examined = examine_package(
            package,
            profile=profile,
            kinds=kinds,
            suppressed=suppressed,
            is_installed=is_installed,
            model_providers=model_providers,
        )
        said += examined.findings
        packages.append(_summarize(package, explored=examined.explored))
        on_package(len(packages), len(folders))
    packs = read_packs(path)
    said += [finding for pack in packs for finding in pack.findings]
    said += () if is_package(path) else _check_together(packages, packs)
    said += unchecked_packages(path)
    files = sum(package.files for package in packages) + len(packs)
    return Review(tuple(packages), sort_findings(said), files)


def _files_read(package: Package) -> frozenset[str]:
    """Return the files of variables that are there, in the package or in its workspace."""
    sources = (variable.source for variable in package.spec.variables.values())
    paths = [source.path for source in sources if isinstance(source, FileSource)]
    home = package.folder.resolve()
    folders = (home, *home.parents[:2])
    # Whether a path may be read at all is the checker's matter; none other is looked at.
    inside = [path for path in paths if why_not_read(path) is None]
    return frozenset(
        path for path in inside if any((folder / path).is_file() for folder in folders)
    )


def _summarize(package: Package, *, explored: bool) -> PackageSummary:
    return PackageSummary(
        folder=package.folder,
        name=package.name,
        orchestrator=package.spec.orchestrator,
        files=len(package.files) + len(package.code),
        explored=explored,
    )


def _with_full_path(finding: Finding, package: Package) -> Finding:
    """Rules name code files relative to the package; readers want the path they can open."""
    if finding.place.file not in package.code:
        return finding
    return replace(
        finding, place=replace(finding.place, file=str(package.folder / finding.place.file))
    )


@dataclass(frozen=True)
class _Locator:
    """Finds places by reading a package again: few have something to find."""

    packages: Mapping[str, PackageSummary]
    packs: Mapping[str, PackFile]

    def __call__(self, path: SpecPath, *, at_key: bool = False, offset: int | None = None) -> Place:
        name, *rest = path
        package = self.packages.get(str(name))
        if package:
            read = read_package(package.folder)
            return read.locate(tuple(rest), at_key=at_key, offset=offset)
        declared = self.packs[str(name)].declared
        return declared.document.place(tuple(rest), key=at_key, offset=offset)


def _check_together(packages: list[PackageSummary], packs: list[PackFile]) -> tuple[Finding, ...]:
    """Check what packages say about each other.

    One that could not be read is known by its folder, so that those which need it are not blamed.
    """
    named = {package.name: package for package in packages}
    whole = {pack.declared.name: pack for pack in packs if pack.pack}
    subject = WorkspaceSubject(
        workflows={
            name: WorkflowSpec(orchestrator=package.orchestrator) for name, package in named.items()
        },
        packs={name: pack.pack for name, pack in whole.items() if pack.pack},
    )
    return check_workspace(subject, locate=_Locator(named, whole))
