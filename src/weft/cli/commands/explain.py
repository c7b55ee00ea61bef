"""weft explain: what a code means, why it matters, how to fix it."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from weft.cli.codes import CODES, FAMILIES, meant_by
from weft.cli.completion import codes
from weft.cli.failure import Exit, not_found, usage
from weft.cli.formats.documents import document
from weft.cli.pages.findings import findings_page
from weft.cli.streams import Streams, write_file
from weft.cli.text import clean
from weft.findings import Json, Rule


def explain(
    code: Annotated[
        str | None,
        Parameter(
            help="A code or a family of codes; all are listed if none is given.", completer=codes
        ),
    ] = None,
    /,
    *,
    all_codes: Annotated[bool, Parameter(name="--all", help="Explain every code.")] = False,
    form: Annotated[
        Literal["text", "markdown"],
        Parameter(name="--format", help="How --all is printed: for reading, or as a page."),
    ] = "text",
    write: Annotated[
        Path | None,
        Parameter(help="Write the page of all codes to this file, as Markdown.", metavar="FILE"),
    ] = None,
    streams: Annotated[Streams, Parameter(parse=False)],
) -> Exit:
    """Explain a code, or list what there is."""
    if code is not None and (all_codes or write):
        raise usage(f"{code} and all codes cannot be asked for at once", "leave one of them out")
    if form == "markdown" and not all_codes:
        raise usage("--format markdown goes with --all", "weft explain --all --format markdown")
    if form == "markdown" and streams.settings.json:
        raise usage("--json and --format markdown contradict each other", "keep one of them")
    if write:
        write_file(write, findings_page())
        as_data = streams.settings.json
        streams.result(document({"file": str(write)}) if as_data else f"wrote {clean(str(write))}")
    elif form == "markdown":
        streams.result(findings_page().rstrip())
    else:
        listed = not all_codes and (code is None or code.upper() in FAMILIES)
        _print(_chosen(code), streams, listed=listed)
    return Exit.DONE


def _chosen(code: str | None) -> tuple[Rule, ...]:
    if code is None:
        return tuple(CODES.values())
    wanted = code.upper()
    if wanted in CODES:
        return (CODES[wanted],)
    if wanted in FAMILIES:
        return FAMILIES[wanted]
    meant = meant_by(wanted)
    hints = [f"did you mean {meant}?"] if meant else []
    raise not_found(f'there is no code "{code}"', *hints, "list all codes: weft explain")


def _print(rules: tuple[Rule, ...], streams: Streams, *, listed: bool) -> None:
    if streams.settings.json:
        streams.result(document({"codes": [_data(entry) for entry in rules]}))
    elif listed:
        streams.rows([(entry.code, entry.severity, entry.title) for entry in rules])
    else:
        streams.result("\n\n".join(_text(entry, streams) for entry in rules))


def _data(entry: Rule) -> dict[str, Json]:
    return {
        "code": entry.code,
        "severity": entry.severity,
        "title": entry.title,
        "why": entry.why,
        "fix": entry.fix,
        "example": entry.example,
    }


def _text(entry: Rule, streams: Streams) -> str:
    paint = streams.paint
    style = "bold red" if entry.severity == "error" else "bold yellow"
    parts = [
        f"{paint(f'{entry.severity}[{entry.code}]', style)}: {paint(entry.title, 'bold')}",
        "",
        streams.prose(entry.why),
        "",
        paint("To fix it:", "cyan"),
        streams.prose(entry.fix),
        "",
        paint("Example:", "cyan"),
        *(f"  {line}" for line in entry.example.splitlines()),
    ]
    return "\n".join(parts)
