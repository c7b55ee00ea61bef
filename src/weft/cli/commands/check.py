"""weft check: read packages, apply every rule, fix what is safe to fix, report."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter

from weft.app.installation import PluginTriggers, is_installed, profile_of, suppressed_sources
from weft.app.models import known_providers
from weft.check.run import sort_findings
from weft.check.subject import Profile
from weft.cli.codes import CODES, nearest_code
from weft.cli.completion import code_lists, package_names
from weft.cli.failure import CommandFailed, Exit, setup, usage
from weft.cli.pages.findings import concise, full, github
from weft.cli.paths import locate_packages, named_folders
from weft.cli.results import Hidden, Printed, Result, document, print_failure, to_json
from weft.cli.streams import Streams, clean, counted
from weft.environment import read_environment
from weft.findings import Finding, Fix, Json, is_error
from weft.packages.reader import Package, read_package
from weft.packages.review import review, review_package

#: Every round applies at most one fix per file; no package needs more rounds than this.
MAX_ROUNDS: Final = 500

#: Seconds between two lines of progress.
PROGRESS_SECONDS: Final = 2.0

_UNEXPLORED: Final = (
    "Not checked yet: which agents a run reaches and whether it can end. Fix the errors first."
)

Form: TypeAlias = Literal["full", "concise", "json", "github", "sarif"]


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
    near = nearest_code(word)
    hints = [f"did you mean {near}?"] if near else []
    raise usage(f'invalid value "{word}" for {option}', *hints, "list all codes: weft explain")


@dataclass(frozen=True, slots=True)
class AppliedFix:
    """A safe fix that was applied, and the file it changed."""

    file: str
    title: str


@dataclass(frozen=True)
class Report(Result):
    """The findings of a check, and what was checked."""

    findings: tuple[Finding, ...]
    fixed: tuple[AppliedFix, ...]
    files: Hidden[int]
    packages: Hidden[int]
    seconds: Hidden[float]
    #: The folders of the packages.
    folders: Hidden[tuple[Path, ...]] = ()
    #: Whether errors prevented the exploration of a package.
    unexplored: Hidden[bool] = False
    form: Hidden[Form] = "full"
    strict: Hidden[bool] = False

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

    @property
    def exit(self) -> Exit:
        """The exit code: 1 for errors, and with --strict for warnings."""
        failed = self.errors or (self.strict and self.warnings)
        return Exit.FAILED if failed else Exit.DONE

    def content(self) -> dict[str, Json]:
        """Return the findings, the fixes and a summary."""
        summary = {
            "errors": self.errors,
            "warnings": self.warnings,
            "fixable": self.fixable,
            "files": self.files,
            "packages": self.packages,
            "seconds": round(self.seconds, 3),
        }
        return {
            "findings": to_json(self.findings),
            "fixed": to_json(self.fixed),
            "summary": summary,
        }

    def show(self, streams: Streams) -> None:
        """Print the report in its format."""
        match self.form:
            case "json":
                streams.result(document(self.content()))
            case "sarif":
                # Deferred: it loads everything that fixes a package.
                from weft.cli.pages.sarif import sarif  # noqa: PLC0415

                streams.result(sarif(self.findings, self.folders))
            case "github":
                for finding in self.findings:
                    streams.result(github(finding))
            case _:
                self._show_text(streams)

    def _show_text(self, streams: Streams) -> None:
        fixed = streams.paint("fixed", "bold green")
        for fix in self.fixed:
            streams.result(f"{fixed} {fix.file}: {streams.paint(fix.title, '')}")
        if self.findings and self.form == "full":
            streams.result(full(self.findings, streams.paint, streams.columns))
        elif self.findings:
            streams.result(concise(self.findings, streams.paint))
        if not streams.settings.quiet:
            streams.result(self.summary())

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


@dataclass(frozen=True, slots=True)
class _Request:
    names: tuple[str, ...]
    selection: Selection
    profile: Profile
    suppressed: frozenset[str]
    form: Form
    fix: bool
    strict: bool


def check(
    *paths: Annotated[
        str,
        Parameter(
            help="Packages by name, or folders; default: the whole workspace.",
            completer=package_names,
        ),
    ],
    fix: Annotated[bool, Parameter(help="Apply safe fixes.")] = False,
    form: Annotated[
        Form | None, Parameter(name="--format", help="Format of the findings; default: full.")
    ] = None,
    watch: Annotated[bool, Parameter(help="Check again on every change, until Ctrl-C.")] = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 on warnings as well.")] = False,
    select: Annotated[
        tuple[str, ...],
        Parameter(
            help="Report only these codes or families: HAND,NAME001.",
            metavar="CODES",
            completer=code_lists,
        ),
    ] = (),
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="Leave out these codes or families.", metavar="CODES", completer=code_lists),
    ] = (),
    profile: Annotated[
        Profile | None,
        Parameter(help="Check for this environment; default: the setting ENVIRONMENT."),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Result:
    """Read packages, apply every rule, and report the findings."""
    if streams.settings.json and form not in {None, "json"}:
        raise usage(f"--json and --format {form} exclude each other", "keep one of them")
    production = None if profile is None else profile == "production"
    settings = read_environment()
    request = _Request(
        names=paths,
        selection=read_selection(select, ignore),
        profile=profile_of(settings, production),
        suppressed=suppressed_sources(settings, production),
        form="json" if streams.settings.json else form or "full",
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
    return Printed()


def _check(request: _Request, streams: Streams) -> Report:
    """Read packages, fix them if asked to, and check them."""
    started = perf_counter()
    workspace = streams.settings.workspace
    folders = named_folders(request.names, workspace)
    fixed: tuple[AppliedFix, ...] = ()
    if request.fix:
        fixed = tuple(
            fix
            for folder in locate_packages(request.names, workspace)
            for fix in fix_package(folder, request.selection, request.profile, request.suppressed)
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
    return Report(
        findings=sort_findings(filter(request.selection.keeps, unique.values())),
        fixed=fixed,
        files=sum(each.files for each in reviews),
        packages=len(packages),
        seconds=perf_counter() - started,
        folders=tuple(package.folder for package in packages),
        unexplored=not all(package.explored for package in packages),
        form=request.form,
        strict=request.strict,
    )


def _details(package: Package) -> Iterator[str]:
    """Yield the description of a package, and what a server mounts for it."""
    about = " ".join(package.spec.orchestrator.description.split())
    line = f"checked {package.folder}: {package.name} {package.digest}"
    yield f"{line}: {about}" if about else line
    for each in package.spec.orchestrator.runtime_extensions:
        yield f"  {each.kind} {each.entrypoint}{f' under {each.prefix}' if each.prefix else ''}"


def fix_package(
    folder: Path, selection: Selection, profile: Profile, suppressed: frozenset[str]
) -> tuple[AppliedFix, ...]:
    """Apply the safe fixes of a package, and read it again after each round.

    Two fixes that undo each other would never end: a text that was seen before ends it.
    """
    # Deferred: most checks fix nothing.
    from weft.packages.edit.fixes import apply_fixes  # noqa: PLC0415

    fixed: list[AppliedFix] = []
    seen: set[tuple[str, ...]] = set()
    for _ in range(MAX_ROUNDS):
        package = read_package(folder)
        texts = tuple(declared.document.text for declared in package.files.values())
        if texts in seen:
            break
        seen.add(texts)
        found = review_package(
            package, profile=profile, kinds=PluginTriggers(), suppressed=suppressed
        )
        wanted = [finding for finding in found if finding.fix and selection.keeps(finding)]
        applied = apply_fixes(package, wanted)
        if not applied:
            break
        fixed += [AppliedFix(_fixed_file(package, fix), fix.title) for fix in applied]
    return tuple(fixed)


def _fixed_file(package: Package, fix: Fix) -> str:
    """Return the file that a fix changes; the finding may be in another one."""
    if fix.file is not None:
        return str(package.folder / fix.file)
    return package.locate(fix.edits[0].path).file


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
        self._streams.note(
            self._streams.paint_error(f"{self._doing}: {done:,} of {total:,}", "dim")
        )


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
