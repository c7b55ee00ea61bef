"""weft check: read packages, apply every rule, report."""

from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from weft.check.run import sort_findings
from weft.check.subject import Profile
from weft.cli.candidates import code_lists, package_names
from weft.cli.exits import Exit
from weft.cli.failure import CommandFailed, usage
from weft.cli.machine_formats import github, report_document
from weft.cli.places import locate_packages, places
from weft.cli.progress import Progress
from weft.cli.render_findings import (
    concise,
    failure_text,
    full,
    mended_lines,
    summary,
)
from weft.cli.report import Mended, Report
from weft.cli.selection import Selection, read_selection
from weft.cli.streams import Streams, clean
from weft.cli.watching import watch_folders
from weft.packages.reader import read_package
from weft.packages.review import review

Form: TypeAlias = Literal["full", "concise", "json", "github", "sarif"]


@dataclass(frozen=True, slots=True)
class _Request:
    names: tuple[str, ...]
    selection: Selection
    profile: Profile
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
        Profile, Parameter(help="Judge for this kind of installation.")
    ] = "development",
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Read packages, apply every rule, and report what was found."""
    if streams.settings.json and form not in {None, "json"}:
        raise usage(f"--json and --format {form} contradict each other", "keep one of them")
    shown: Form = "json" if streams.settings.json else form or "full"
    request = _Request(paths, read_selection(select, ignore), profile, shown, fix, strict)
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
    watched = places(request.names, streams.settings.workspace)

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
    """Read, mend if asked to, and check."""
    began = perf_counter()
    workspace = streams.settings.workspace
    found = places(request.names, workspace)
    mended: tuple[Mended, ...] = ()
    if request.fix:
        # Deferred: looking is far more frequent than mending.
        from weft.cli.fixing import mend_package  # noqa: PLC0415

        mended = tuple(
            it
            for folder in locate_packages(request.names, workspace)
            for it in mend_package(folder, request.selection, profile=request.profile)
        )
    progress = Progress(streams, "packages checked")
    reviews = [review(it, profile=request.profile, on_package=progress) for it in found]
    packages = [package for it in reviews for package in it.packages]
    if streams.settings.verbose:  # asked first, since a digest is work
        for package in packages:
            digest = read_package(package.folder).digest
            streams.detail(clean(f"checked {package.folder}: {package.name} {digest}"))
    # Places may overlap, as in `weft check . workflows/Support`: each finding is told once.
    told = {repr(finding): finding for it in reviews for finding in it.findings}
    return Report(
        findings=sort_findings(filter(request.selection.keeps, told.values())),
        files=sum(it.files for it in reviews),
        packages=len(packages),
        seconds=perf_counter() - began,
        mended=mended,
        folders=tuple(package.folder for package in packages),
    )


def _print(report: Report, form: Form, streams: Streams) -> None:
    match form:
        case "json":
            streams.result(report_document(report))
        case "sarif":
            # Deferred: it needs all that mends a package.
            from weft.cli.sarif import sarif  # noqa: PLC0415

            streams.result(sarif(report.findings, report.folders))
        case "github":
            for finding in report.findings:
                streams.result(github(finding))
        case _:
            _print_text(report, form, streams)


def _print_text(report: Report, form: Form, streams: Streams) -> None:
    for line in mended_lines(report.mended, streams.paint):
        streams.result(line)
    if report.findings:
        if form == "full":
            streams.result(full(report.findings, streams.paint, streams.columns))
        else:
            streams.result(concise(report.findings, streams.paint))
    if not streams.settings.quiet:
        streams.result(summary(report))
