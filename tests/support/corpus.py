"""The corpus of findings: workflows in, findings out, as YAML files under tests/findings.

`python tests/support/corpus.py` rewrites the expected findings after a message has changed; review
the difference before committing it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from weft.check.problems import find_problems
from weft.check.run import RULES, find_hits, mode_of
from weft.check.subject import Hit, Subject
from weft.findings import AppendItem, Edit, RenameKey, SetValue
from weft.spec.workflow import WorkflowSpec

FOLDER: Final = Path(__file__).parents[1] / "findings" / "rules"

#: Separates the steps of a path into the data of a case; a value that removes what is there.
STEP: Final = " > "
GONE: Final = "(none)"

#: What a case says about the subject beside its spec.
_OPTIONS: Final = ("code", "folder", "profile", "suppressed", "files", "model_providers")
_SETS: Final = frozenset({"suppressed", "files", "model_providers"})


@dataclass(frozen=True)
class RuleCase:
    """One workflow, the codes it is checked for, and the findings it has."""

    name: str
    codes: frozenset[str]
    data: dict[str, Any]
    expected: list[str]


def read_corpus(file: Path) -> dict[str, Any]:
    """Return the content of a file: the base of its cases, and the cases."""
    return yaml.load(file.read_text(), Loader=yaml.CSafeLoader)


def cases_in(content: dict[str, Any]) -> Iterator[tuple[RuleCase, dict[str, Any]]]:
    """Yield the cases of a file, each with the YAML entry that holds its findings."""
    for entry in content["cases"]:
        first = changed(content["base"], entry.get("given", {}))
        codes = frozenset(entry["codes"].split())
        yield RuleCase(entry["case"], codes, first, entry.get("finds", [])), entry
        for number, change in enumerate(entry.get("clean", ()), start=1):
            name = f"{entry['case']}, clean {number}"
            yield RuleCase(name, codes, changed(first, change), []), {}
        for number, variant in enumerate(entry.get("variants", ()), start=1):
            name = f"{entry['case']}, variant {number}"
            own = frozenset(variant["codes"].split()) if "codes" in variant else codes
            data = changed(first, variant["but"])
            yield RuleCase(name, own, data, variant.get("finds", [])), variant


def changed(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return data with other values at some paths."""
    result = json.loads(json.dumps(data))
    for path, value in changes.items():
        *steps, last = path.split(STEP)
        inner = result
        for step in steps:
            inner = inner[int(step)] if isinstance(inner, list) else inner[step]
        key = int(last) if isinstance(inner, list) else last
        if value == GONE:
            del inner[key]
        else:
            inner[key] = value
    return result


def subject_of(data: Mapping[str, Any]) -> Subject:
    """Return the workflow of a case as rules see it."""
    options = {key: data[key] for key in _OPTIONS if key in data}
    options |= {key: frozenset(options[key]) for key in _SETS & options.keys()}
    spec = {key: value for key, value in data.items() if key not in _OPTIONS}
    return Subject(WorkflowSpec.model_validate(spec), **options)


def findings_of(case: RuleCase) -> list[str]:
    """Return the findings of a case, one line each: those of its shape, or those of the rules."""
    try:
        subject = subject_of(case.data)
    except ValidationError as error:
        problems = find_problems(error, WorkflowSpec)
        return [
            shown(problem.code, Hit(problem.path, problem.message, hint=problem.hint))
            for problem in problems
        ]
    hits, _ = find_hits(subject, RULES, mode_of(subject.spec))
    found = [(rule.code, hit) for rule, those in hits if rule.code in case.codes for hit in those]
    return [shown(code, hit) for code, hit in sorted(found, key=lambda item: item[0])]


def shown(code: str, hit: Hit) -> str:
    """Write a finding in one line: code, place, message, causes, hints and fix."""
    parts = [f"{code} {_place(hit)}: {hit.message}"]
    parts += [f"because {cause}" for cause in hit.cause]
    parts += hit.hint
    if hit.fix:
        edits = [*map(_edit, hit.fix.edits), *([f"in {hit.fix.file}"] if hit.fix.file else [])]
        parts.append(f"fix: {'; '.join([hit.fix.title, *edits])}")
    line = " | ".join(parts)
    return f"{hit.severity} {line}" if hit.severity else line


def _place(hit: Hit) -> str:
    if hit.place is not None:
        return str(hit.place)
    path = ".".join(map(str, hit.path)) + (" (key)" if hit.at_key else "")
    if hit.offset is None:
        return path
    end = "" if hit.length is None else f":{hit.offset + hit.length}"
    return f"{path}[{hit.offset}{end}]"


def _edit(edit: Edit) -> str:
    path = ".".join(map(str, edit.path))
    match edit:
        case SetValue(value=value):
            return f"set {path} to {json.dumps(value, ensure_ascii=False)}"
        case AppendItem(value=value):
            return f"append {json.dumps(value, ensure_ascii=False)} to {path}"
        case RenameKey(key=key):
            return f"rename {path} to {key}"
        case _:
            return f"remove {path}"


def update(file: Path) -> None:
    """Write the findings there are now into a file."""
    content = read_corpus(file)
    for case, entry in cases_in(content):
        found = findings_of(case)
        if entry:
            entry["finds"] = found
        elif found:
            _move_to_variants(content, case, found)
    for entry in (
        *content["cases"],
        *(variant for case in content["cases"] for variant in _variants(case)),
    ):
        if not entry["finds"]:
            del entry["finds"]
    write_corpus(file, content["base"], content["cases"])


def _variants(case: dict[str, Any]) -> list[dict[str, Any]]:
    return case.get("variants", [])


def _move_to_variants(content: dict[str, Any], case: RuleCase, found: list[str]) -> None:
    """Move a change that was clean to the variants, which have findings."""
    name, _, number = case.name.rpartition(", clean ")
    entry = next(case for case in content["cases"] if case["case"] == name)
    change = entry["clean"][int(number) - 1]
    entry.setdefault("variants", []).append({"but": change, "finds": found})
    entry["clean"][int(number) - 1] = None


def write_corpus(file: Path, base: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    """Write a file of the corpus; what a case is about stands in one line."""
    for entry in (*cases, *(variant for case in cases for variant in case.get("variants", ()))):
        for key in entry.keys() & {"given", "but"}:
            entry[key] = _flow(entry[key])
    for case in cases:
        clean = [_flow(change) for change in case.pop("clean", ()) if change is not None]
        if clean:
            case["clean"] = clean
    head = yaml.dump(
        {"base": base}, Dumper=_Dumper, sort_keys=False, width=100, default_flow_style=None
    )
    body = yaml.dump({"cases": cases}, Dumper=_Dumper, sort_keys=False, width=1000)
    file.write_text(head + body)


class _Flow(dict[str, Any]):
    """Data that is written in one line."""


class _FlowList(list[Any]):
    """A list that is written in one line."""


class _Dumper(yaml.SafeDumper):
    """Writes `_Flow` data in one line."""


_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, True)
)
_Dumper.add_representer(
    _FlowList, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, True)
)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def _flow(value: Any) -> Any:
    if isinstance(value, dict):
        return _Flow({key: _flow(inner) for key, inner in value.items()})
    return _FlowList(map(_flow, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.yaml")):
        update(path)
