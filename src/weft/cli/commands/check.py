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
from weft.cli.codes import CODES, meant_by
from weft.cli.completion import code_lists, package_names
from weft.cli.failure import CommandFailed, Exit, setup, usage
from weft.cli.formats.documents import github, report_document
from weft.cli.formats.findings_text import (
    concise,
    failure_text,
    fixed_lines,
    full,
    summary,
)
from weft.cli.formats.report import AppliedFix, Report
from weft.cli.paths import locate_packages, named_folders
from weft.cli.streams import Streams
from weft.cli.text import clean
from weft.environment import read_environment
from weft.findings import Finding, Fix
from weft.packages.reader import Package, read_package
from weft.packages.review import review, review_package

#: A round applies one fix to a file at most; no package has use for more rounds than this.
MOST_ROUNDS: Final = 500

#: Seconds between two lines; work that takes less is reported when it is done.
EVERY: Final = 2.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The beginnings of codes to report (all if none is named) and of those to leave out."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def keeps(self, finding: Finding) -> bool:
        """Tell whether a finding is wanted.

        Asking for some codes does not hide that a file could not be read: what is wrong inside it
        cannot be found, so silence would not mean that all is well.
        """
        unread = finding.code.startswith("SCHEMA") and finding.severity == "error"
        wanted = not self.select or unread or finding.code.startswith(self.select)
        return wanted and not (self.ignore and finding.code.startswith(self.ignore))


def read_selection(select: Iterable[str], ignore: Iterable[str]) -> Selection:
    """Read the options --select and --ignore, each a list of codes or families with commas."""
    return Selection(_codes("--select", select), _codes("--ignore", ignore))


def _codes(option: str, values: Iterable[str]) -> tuple[str, ...]:
    words = (word.strip().upper() for value in values for word in value.split(","))
    return tuple(_known(option, word) for word in words)


def _known(option: str, word: str) -> str:
    if word and any(code.startswith(word) for code in CODES):
        return word
    meant = meant_by(word)
    hints = [f"did you mean {meant}?"] if meant else []
    raise usage(f'{option}: no code begins with "{word}"', *hints, "list all codes: weft explain")


Form: TypeAlias = Literal["full", "concise", "json", "github", "sarif"]


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
            help="Packages by name, or folders; the whole workspace if none is given.",
            completer=package_names,
        ),
    ],
    fix: Annotated[bool, Parameter(help="Apply the corrections that are safe.")] = False,
    form: Annotated[
        Form | None, Parameter(name="--format", help="How findings are printed; full if not given.")
    ] = None,
    watch: Annotated[bool, Parameter(help="Check again on every change, until Ctrl-C.")] = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 on warnings as well.")] = False,
    select: Annotated[
        tuple[str, ...],
        Parameter(
            help="Report only these codes or families: HAND,EXPO003.",
            metavar="CODES",
            completer=code_lists,
        ),
    ] = (),
    ignore: Annotated[
        tuple[str, ...],
        Parameter(help="Leave these codes or families out.", metavar="CODES", completer=code_lists),
    ] = (),
    profile: Annotated[
        Profile | None,
        Parameter(help="Judge for this kind of installation; default: as ENVIRONMENT says."),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Read packages, apply every rule, and report what was found."""
    if streams.settings.json and form not in {None, "json"}:
        raise usage(f"--json and --format {form} contradict each other", "keep one of them")
    shown: Form = "json" if streams.settings.json else form or "full"
    said = None if profile is None else profile == "production"
    settings = read_environment()
    request = _Request(
        names=paths,
        selection=read_selection(select, ignore),
        profile=profile_of(settings, said),
        suppressed=suppressed_sources(settings, said),
        form=shown,
        fix=fix,
        strict=strict,
    )
    if watch:
        return _watch(request, streams)
    return _once(request, streams)


def _once(request: _Request, streams: Streams) -> Exit:
    report = _look(request, streams)
    _print(report, request.form, streams)
    failed = report.errors or (request.strict and report.warnings)
    return Exit.FAILED if failed else Exit.DONE


def _watch(request: _Request, streams: Streams) -> Exit:
    """Check, and again after every change; only Ctrl-C ends it."""
    if request.form not in {"full", "concise"}:
        raise usage(
            f"--watch prints one report after the other, which {request.form} cannot hold",
            "leave --watch out, or use --format concise",
        )
    watched = named_folders(request.names, streams.settings.workspace)

    def again() -> None:
        try:
            _once(request, streams)
        except CommandFailed as error:  # a package may vanish while it is being edited
            shown = failure_text(error.failure, streams.paint_error, streams.error_columns)
            streams.problem(shown)
        streams.note("Watching for changes. Ctrl-C ends it.")

    again()
    watch_folders(watched, again)
    return Exit.DONE


def _look(request: _Request, streams: Streams) -> Report:
    """Read, fix if asked to, and check."""
    began = perf_counter()
    workspace = streams.settings.workspace
    found = named_folders(request.names, workspace)
    fixed: tuple[AppliedFix, ...] = ()
    if request.fix:
        fixed = tuple(
            it
            for folder in locate_packages(request.names, workspace)
            for it in fix_package(folder, request.selection, request.profile, request.suppressed)
        )
    progress = Progress(streams, "packages checked")
    reviews = [
        review(
            it,
            profile=request.profile,
            kinds=PluginTriggers(),
            suppressed=request.suppressed,
            on_package=progress,
            is_installed=is_installed,
            model_providers=known_providers(),
        )
        for it in found
    ]
    packages = [package for it in reviews for package in it.packages]
    if streams.settings.verbose:  # asked first, since a digest is work
        for package in packages:
            for line in _checked(read_package(package.folder)):
                streams.detail(clean(line))
    # Places may overlap, as in `weft check . workflows/Support`: each finding is reported once.
    found_once = {repr(finding): finding for it in reviews for finding in it.findings}
    return Report(
        findings=sort_findings(filter(request.selection.keeps, found_once.values())),
        files=sum(it.files for it in reviews),
        packages=len(packages),
        seconds=perf_counter() - began,
        fixed=fixed,
        folders=tuple(package.folder for package in packages),
        unexplored=not all(package.explored for package in packages),
    )


def _checked(package: Package) -> Iterator[str]:
    """Name a package, with what its author says of it and what a server mounts for it."""
    about = " ".join(package.spec.orchestrator.description.split())
    line = f"checked {package.folder}: {package.name} {package.digest}"
    yield f"{line}: {about}" if about else line
    for it in package.spec.orchestrator.runtime_extensions:
        yield f"  {it.kind} {it.entrypoint}{f' under {it.prefix}' if it.prefix else ''}"


def _print(report: Report, form: Form, streams: Streams) -> None:
    match form:
        case "json":
            streams.result(report_document(report))
        case "sarif":
            # Deferred: it needs all that fixes a package.
            from weft.cli.formats.sarif import sarif  # noqa: PLC0415

            streams.result(sarif(report.findings, report.folders))
        case "github":
            for finding in report.findings:
                streams.result(github(finding))
        case _:
            _print_text(report, form, streams)


def _print_text(report: Report, form: Form, streams: Streams) -> None:
    for line in fixed_lines(report.fixed, streams.paint):
        streams.result(line)
    if report.findings:
        if form == "full":
            streams.result(full(report.findings, streams.paint, streams.columns))
        else:
            streams.result(concise(report.findings, streams.paint))
    if not streams.settings.quiet:
        streams.result(summary(report))


def fix_package(
    folder: Path, selection: Selection, profile: Profile, suppressed: frozenset[str]
) -> tuple[AppliedFix, ...]:
    """Apply the safe fixes of a package's wanted findings, reading it anew after each round.

    Two fixes that undo each other would go on for ever: a text that was there before ends it.
    """
    # Deferred: checking is far more frequent than fixing.
    from weft.packages.edit.fixes import apply_fixes  # noqa: PLC0415

    fixed: list[AppliedFix] = []
    seen: set[tuple[str, ...]] = set()
    for _ in range(MOST_ROUNDS):
        package = read_package(folder)
        texts = tuple(declared.document.text for declared in package.files.values())
        if texts in seen:
            break
        seen.add(texts)
        wanted = _wanted(package, selection, profile, suppressed)
        applied = apply_fixes(package, wanted)
        if not applied:
            break
        fixed += [AppliedFix(_file(package, fix), fix.title) for fix in applied]
    return tuple(fixed)


def _wanted(
    package: Package, selection: Selection, profile: Profile, suppressed: frozenset[str]
) -> list[Finding]:
    found = review_package(package, profile=profile, kinds=PluginTriggers(), suppressed=suppressed)
    return [finding for finding in found if finding.fix and selection.keeps(finding)]


def _file(package: Package, fix: Fix) -> str:
    """Return the file a fix changes; it may be another one than the finding stands in."""
    if fix.file is not None:
        return str(package.folder / fix.file)
    return package.locate(fix.edits[0].path).file


class Progress:
    """Is called after each piece of work; now and then prints a line at a terminal."""

    def __init__(self, streams: Streams, doing: str) -> None:
        self._streams = streams
        self._doing = doing
        self._last = monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Take note of how many pieces of how many are done."""
        now = monotonic()
        if now - self._last < EVERY or not sys.stderr.isatty():
            return
        self._last = now
        self._streams.note(
            self._streams.paint_error(f"{self._doing}: {done:,} of {total:,}", "dim")
        )


def watch_folders(folders: list[Path], again: Callable[[], None]) -> None:
    """Call `again` after every change in the folders, until Ctrl-C ends it."""
    try:
        # Deferred: an optional part, and one that is only needed here.
        from watchfiles import watch  # noqa: PLC0415
    except ImportError as error:
        raise setup(
            "watching files needs a part of Weft that is not installed",
            "install it: pip install watchfiles",
            cause=(f"the package {error.name} is missing",),
        ) from error
    for _ in watch(*folders):
        again()
