"""Findings as SARIF 2.1.0, the format code-scanning services read."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from os import fsencode
from pathlib import Path
from typing import Final
from urllib.parse import quote

import weft
from weft.cli.codes import CODES
from weft.findings import Finding, Json, Rule
from weft.packages.edit.fixes import fixed_texts
from weft.packages.reader import Package, read_package
from weft.packages.text.index import line_column

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Sequence[Finding], folders: Sequence[Path]) -> str:
    """Return a SARIF log with one run: the rules that apply, the findings and their safe fixes.

    `folders` are the packages the findings are about.
    """
    package = lru_cache(maxsize=1)(read_package)  # Findings are sorted: one package is enough.
    codes = sorted({finding.code for finding in findings})
    driver = {
        "name": "weft",
        "version": weft.__version__,
        "rules": [_rule(CODES[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [
            {**_result(finding, codes.index(finding.code)), **_fixes(finding, folders, package)}
            for finding in findings
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(entry: Rule) -> dict[str, Json]:
    return {
        "id": entry.code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.why},
        "help": {"text": entry.fix},
        "defaultConfiguration": {"level": entry.severity},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Json]:
    text = "\n".join([finding.message, *finding.cause, *finding.hint])
    return {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(finding)}],
    }


def _location(finding: Finding) -> dict[str, Json]:
    place = finding.place
    location: dict[str, Json] = {"artifactLocation": {"uri": _uri(Path(place.file))}}
    if place.line:
        region = {"startLine": place.line}
        if place.column:
            region["startColumn"] = place.column
            region["endColumn"] = place.column + place.length
        location["region"] = region
    return location


def _fixes(
    finding: Finding, folders: Sequence[Path], read: Callable[[Path], Package]
) -> dict[str, Json]:
    """Return the safe fix of a finding as text changes; empty if there is none."""
    file = Path(finding.place.file)
    folder = next((each for each in folders if file.is_relative_to(each)), None)
    if finding.fix is None or folder is None:
        return {}
    package = read(folder)
    former = {part.name: part.document.text for part in package.files.values()}
    texts = fixed_texts(package, finding.fix)
    if not texts or not texts.keys() <= former.keys():
        return {}  # SARIF cannot express a new file.
    changes = [
        {
            "artifactLocation": {"uri": _uri(folder / name)},
            "replacements": [_replacement(former[name], text)],
        }
        for name, text in texts.items()
    ]
    return {"fixes": [{"description": {"text": finding.fix.title}, "artifactChanges": changes}]}


def _replacement(old: str, new: str) -> dict[str, Json]:
    """Return the smallest single replacement that turns one text into the other."""
    start = _shared(old, new)
    same = _shared(old[start:][::-1], new[start:][::-1])
    end = len(old) - same
    first, last = line_column(old, start), line_column(old, end)
    region = {"startLine": first[0], "startColumn": first[1]}
    return {
        "deletedRegion": {**region, "endLine": last[0], "endColumn": last[1]},
        "insertedContent": {"text": new[start : len(new) - same]},
    }


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _uri(path: Path) -> str:
    """Return the URI of a file, relative to the current folder if possible."""
    here = Path.cwd()
    if path.is_absolute() and not path.is_relative_to(here):
        return path.as_uri()
    relative = path.relative_to(here) if path.is_absolute() else path
    # As bytes: a file name need not be valid text.
    return quote(fsencode(relative.as_posix()))
