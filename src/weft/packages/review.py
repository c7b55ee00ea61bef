"""Reading and checking packages on disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weft.check.rules.secrets import why_not_read
from weft.check.run import CheckResult, examine, sort_findings
from weft.check.subject import Profile, Subject
from weft.check.workspace import WorkspaceSubject, check_workspace
from weft.engine.variables.trigger_index import NO_KINDS, TriggerKinds
from weft.errors import CheckFailed
from weft.findings import Finding, Place, is_error
from weft.findings import Path as SpecPath
from weft.packages.reader import Package, read_package
from weft.packages.scenarios import read_scenarios
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
    #: Whether its runs were explored; errors in names and conditions prevent that.
    explored: bool = True


@dataclass(frozen=True)
class Review:
    """The findings of a package or workspace."""

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
    home: Path | None = None,
    scenarios: bool = True,
) -> tuple[Finding, ...]:
    """Return all findings of one package, from reading it and from the rules.

    `home` is where it will be, if that is not the folder that was read.
    """
    return examine_package(
        package,
        profile=profile,
        kinds=kinds,
        suppressed=suppressed,
        home=home,
        scenarios=scenarios,
    ).findings


def examine_package(
    package: Package,
    *,
    profile: Profile = "development",
    kinds: TriggerKinds = NO_KINDS,
    suppressed: frozenset[str] = frozenset(),
    is_installed: Callable[[str], bool] | None = None,
    model_providers: frozenset[str] | None = None,
    home: Path | None = None,
    scenarios: bool = True,
) -> CheckResult:
    """Apply all rules to one package; its findings include those of reading it.

    They include those of its `scenarios` too, which have nothing to do with what runs.
    """
    subject = Subject(
        spec=package.spec,
        folder=package.folder.resolve().name,
        # A byte order mark at the beginning is not part of the text; Python ignores it too.
        code={name: raw.decode("utf-8-sig") for name, raw in package.code.items()},
        profile=profile,
        kinds=kinds,
        suppressed=suppressed,
        files=_files_read(package, home or package.folder),
        is_installed=is_installed,
        model_providers=model_providers,
    )
    examined = examine(subject, locate=package.locate, broken=package.broken)
    placed = (_with_full_path(finding, package) for finding in examined.findings)
    tried = read_scenarios(package) if scenarios else ()
    found = [*package.findings, *placed, *(each for file in tried for each in file.findings)]
    return replace(examined, findings=sort_findings(found))


def refuse_errors(
    package: Package,
    *,
    profile: Profile = "development",
    kinds: TriggerKinds = NO_KINDS,
    suppressed: frozenset[str] = frozenset(),
) -> None:
    """Raise CheckFailed with all findings if a package has errors."""
    said = review_package(
        package, profile=profile, kinds=kinds, suppressed=suppressed, scenarios=False
    )
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

    `on_package` is called after each package with the number done and the total. `is_installed`
    returns whether a module can be imported, and `model_providers` are the known model prefixes.
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


def _files_read(package: Package, home: Path) -> frozenset[str]:
    """Return the existing files of variables, in the package or its workspace."""
    sources = (variable.source for variable in package.spec.variables.values())
    paths = [source.path for source in sources if isinstance(source, FileSource)]
    folders = (package.folder.resolve(), *home.resolve().parents[:2])
    # The checker reports paths that must not be read; those are not looked up.
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
    """Return a finding with a path that can be opened: rules use paths in the package."""
    if finding.place.file not in package.code:
        return finding
    return replace(
        finding, place=replace(finding.place, file=str(package.folder / finding.place.file))
    )


@dataclass(frozen=True)
class _Locator:
    """Finds places by reading a package again, since few packages have findings."""

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
    """Check the references between packages.

    An unreadable package counts by its folder name, so that packages that require it have no error.
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
