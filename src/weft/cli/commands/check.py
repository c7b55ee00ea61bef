"""weft check: read packages, apply every rule, fix what is safe to fix, report."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from cyclopts import Parameter

from weft.app.installation import PluginTriggers, is_installed, profile_of, suppressed_sources
from weft.app.models import known_providers
from weft.check.run import sort_findings
from weft.check.subject import Profile
from weft.cli.codes import CODES, nearest_code
from weft.cli.completion import code_lists
from weft.cli.failure import CommandFailed, Exit, did_you_mean, setup, usage
from weft.cli.options import Output, command
from weft.cli.pages.findings import concise, full, github
from weft.cli.paths import PackageName, locate_packages, named_folders
from weft.cli.results import Result, document, print_failure
from weft.cli.streams import Streams, clean, counted
from weft.environment import read_environment
from weft.findings import Finding, is_error
from weft.packages.reader import Package, read_package
from weft.packages.review import review, review_package

#: Seconds between two lines of progress.
PROGRESS_SECONDS: Final = 2.0

_UNEXPLORED: Final = (
    "Not checked yet: which agents a run reaches and whether it can end. Fix the errors first."
)

Form: TypeAlias = Literal["full", "concise", "json", "github", "sarif"]
Codes: TypeAlias = Annotated[tuple[str, ...], Parameter(completer=code_lists)]


@dataclass(frozen=True, slots=True)
class Selection:
    """The prefixes of the codes to report (all if empty), and of the codes to leave out."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def keeps(self, finding: Finding) -> bool:
        """Tell whether a finding is reported.

        A file that cannot be read is always reported: its other findings are unknown.
        """
        unread = finding.code.startswith("SCHEMA") and finding.severity == "error"
        wanted = not self.select or unread or finding.code.startswith(self.select)
        return wanted and not (self.ignore and finding.code.startswith(self.ignore))


def read_selection(select: Iterable[str], ignore: Iterable[str]) -> Selection:
    """Return the selection of --select and --ignore, each a list of codes or families."""
    return Selection(_codes("--select", select), _codes("--ignore", ignore))


def _codes(option: str, values: Iterable[str]) -> tuple[str, ...]:
    words = (word.strip().upper() for value in values for word in value.split(","))
    return tuple(_known(option, word) for word in words)


def _known(option: str, word: str) -> str:
    if word and any(code.startswith(word) for code in CODES):
        return word
    hints = did_you_mean(nearest_code(word))
    raise usage(f'invalid value "{word}" for {option}', *hints, "list all codes: weft explain")


class AppliedFix(NamedTuple):
    """A safe fix that was applied, and the file it changed."""

    file: str
    title: str


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a check, and what was checked."""

    findings: Sequence[Finding]
    fixed: Sequence[AppliedFix]
    files: int
    packages: int
    seconds: float
    #: Whether errors prevented the exploration of a package.
    unexplored: bool = False

    @property
    def errors(self) -> int:
        """The number of errors."""
        return sum(is_error(finding) for finding in self.findings)

    @property
    def warnings(self) -> int:
        """The number of warnings."""
        return len(self.findings) - self.errors

    @property
    def fixable(self) -> int:
        """The number of findings with a safe fix."""
        return sum(finding.fix is not None for finding in self.findings)

    def data(self) -> dict[str, object]:
        """Return the findings, the fixes and a summary."""
        summary = {
            "errors": self.errors,
            "warnings": self.warnings,
            "fixable": self.fixable,
            "files": self.files,
            "packages": self.packages,
            "seconds": round(self.seconds, 3),
        }
        return {"findings": self.findings, "fixed": self.fixed, "summary": summary}

    def summary(self) -> str:
        """Return the last line of a report."""
        files = counted(self.files, "file")
        took = f"({self.seconds:.2f} s)"
        if not self.findings:
            return f"No findings in {files} of {counted(self.packages, 'package')} {took}."
        kinds = ((self.errors, "error"), (self.warnings, "warning"))
        found = ", ".join(counted(number, noun) for number, noun in kinds if number)
        fixable = f" {self.fixable} fixable." if self.fixable else ""
        later = f"\n{_UNEXPLORED}" if self.unexplored else ""
        return f"Found {found} in {files} {took}.{fixable}{later}"


def _text(report: Report, form: Form, folders: Sequence[Path], streams: Streams) -> str:
    """Return a report in a format; `folders` are those of the packages."""
    match form:
        case "json":
            return document(Result(report.data()).content())
        case "sarif":
            # Deferred: it loads everything that fixes a package.
            from weft.cli.pages.sarif import sarif  # noqa: PLC0415

            return sarif(report.findings, folders)
        case "github":
            return "\n".join(map(github, report.findings))
        case _:
            pass
    fixed = streams.paint("fixed", "bold green")
    lines = [f"{fixed} {fix.file}: {streams.paint(fix.title, '')}" for fix in report.fixed]
    if report.findings and form == "full":
        lines.append(full(report.findings, streams.paint, streams.columns))
    elif report.findings:
        lines.append(concise(report.findings, streams.paint))
    return "\n".join(lines if streams.settings.quiet else [*lines, report.summary()])


@dataclass(frozen=True, slots=True)
class _Request:
    names: tuple[str, ...]
    selection: Selection
    profile: Profile
    suppressed: frozenset[str]
    form: Form
    fix: bool
    strict: bool


@command
def check(
    *paths: PackageName,
    fix: bool = False,
    format_: Form | None = None,
    watch: bool = False,
    strict: bool = False,
    select: Codes = (),
    ignore: Codes = (),
    profile: Profile | None = None,
    streams: Output,
) -> Result:
    """Check packages, and print how to fix them.

    Options:
      PATHS           Packages by name, or folders; default: the whole workspace.
      --fix           Apply safe fixes.
      --format        Format of the findings; default: full.
      --watch         Check again on every change, until Ctrl-C.
      --strict        Exit with 1 on warnings as well.
      --select CODES  Report only these codes or families: HAND,NAME001.
      --ignore CODES  Leave out these codes or families.
      --profile       Check for this environment; default: the setting ENVIRONMENT.

    Examples:
      weft check
      weft check Returns --fix
      weft check --select HAND,NAME001 --format concise
      weft check --format sarif > weft.sarif
    """
    if streams.settings.json and format_ not in {None, "json"}:
        raise usage(f"--json and --format {format_} exclude each other", "keep one of them")
    production = None if profile is None else profile == "production"
    settings = read_environment()
    request = _Request(
        names=paths,
        selection=read_selection(select, ignore),
        profile=profile_of(settings, production),
        suppressed=suppressed_sources(settings, production),
        form="json" if streams.settings.json else format_ or "full",
        fix=fix,
        strict=strict,
    )
    return _watch(request, streams) if watch else _check(request, streams)


def _watch(request: _Request, streams: Streams) -> Result:
    """Check, and again after every change; only Ctrl-C ends it."""
    if request.form not in {"full", "concise"}:
        raise usage(
            f"--watch prints several reports, which --format {request.form} does not allow",
            "leave out --watch, or use --format concise",
        )
    watched = named_folders(request.names, streams.settings.workspace)

    def again() -> None:
        try:
            _check(request, streams).show(streams)
        except CommandFailed as error:  # a package may disappear while it is edited
            print_failure(error.failure, streams)
        streams.note("Watching for changes. Ctrl-C ends it.")

    again()
    watch_folders(watched, again)
    return Result()


def _check(request: _Request, streams: Streams) -> Result:
    """Read packages, fix them if asked to, and check them."""
    started = perf_counter()
    workspace = streams.settings.workspace
    folders = named_folders(request.names, workspace)
    fixed: tuple[AppliedFix, ...] = ()
    if request.fix:
        fixed = tuple(
            fix
            for folder in locate_packages(request.names, workspace)
            for fix in _fix_package(folder, request)
        )
    progress = Progress(streams, "packages checked")
    reviews = [
        review(
            folder,
            profile=request.profile,
            kinds=PluginTriggers(),
            suppressed=request.suppressed,
            on_package=progress,
            is_installed=is_installed,
            model_providers=known_providers(),
        )
        for folder in folders
    ]
    packages = [package for each in reviews for package in each.packages]
    if streams.settings.verbose:  # because a digest takes time
        for package in packages:
            for line in _details(read_package(package.folder)):
                streams.detail(clean(line))
    # Folders may overlap, as in `weft check . workflows/Support`: each finding is reported once.
    unique = {repr(finding): finding for each in reviews for finding in each.findings}
    report = Report(
        findings=sort_findings(filter(request.selection.keeps, unique.values())),
        fixed=fixed,
        files=sum(each.files for each in reviews),
        packages=len(packages),
        seconds=perf_counter() - started,
        unexplored=not all(package.explored for package in packages),
    )
    failed = report.errors or (request.strict and report.warnings)
    return Result(
        report.data(),
        _text(report, request.form, [package.folder for package in packages], streams),
        outcome=Exit.FAILED if failed else Exit.DONE,
    )


def _details(package: Package) -> Iterator[str]:
    """Yield the description of a package, and what a server mounts for it."""
    about = " ".join(package.spec.orchestrator.description.split())
    line = f"checked {package.folder}: {package.name} {package.digest}"
    yield f"{line}: {about}" if about else line
    for each in package.spec.orchestrator.runtime_extensions:
        yield f"  {each.kind} {each.entrypoint}{f' under {each.prefix}' if each.prefix else ''}"


def _fix_package(folder: Path, request: _Request) -> Iterator[AppliedFix]:
    """Apply the safe fixes of a package."""
    # Deferred: most checks fix nothing.
    from weft.packages.edit.fixes import fix_package  # noqa: PLC0415

    def reviewed(package: Package) -> tuple[Finding, ...]:
        return review_package(
            package,
            profile=request.profile,
            kinds=PluginTriggers(),
            suppressed=request.suppressed,
        )

    for file, fix in fix_package(folder, reviewed, request.selection.keeps):
        yield AppliedFix(file, fix.title)


class Progress:
    """Prints a line of progress now and then, if stderr is a terminal."""

    def __init__(self, streams: Streams, doing: str) -> None:
        self._streams = streams
        self._doing = doing
        self._last = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Report how many pieces of how many are done."""
        now = monotonic()
        if now - self._last < PROGRESS_SECONDS or not sys.stderr.isatty():
            return
        self._last = now
        self._streams.aside(f"{self._doing}: {done:,} of {total:,}")


def watch_folders(folders: list[Path], again: Callable[[], None]) -> None:
    """Call `again` after every change in the folders, until Ctrl-C."""
    try:
        # Deferred: an optional dependency that only this needs.
        from watchfiles import watch  # noqa: PLC0415
    except ImportError as error:
        raise setup(
            "--watch needs an optional dependency",
            "install it: pip install watchfiles",
            cause=(f"the package {error.name} is not installed",),
        ) from error
    for _ in watch(*folders):
        again()
