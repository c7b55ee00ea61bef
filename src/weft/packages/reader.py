"""From a folder of files to a spec, with a finding for everything that cannot be read."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from weft.catalogue import CATALOGUE
from weft.check.problems import Problem, find_problems, path_text
from weft.findings import Finding, Fix, Place, RenameKey
from weft.findings import Path as SpecPath
from weft.ids import slug
from weft.packages.edit.rewrite import Rewrite, child, is_list, is_map
from weft.packages.edit.spellings import DIALECTS
from weft.packages.folder import Contents, read_bytes, read_folder
from weft.packages.layout import (
    FILE_KINDS,
    SUFFIXES,
    AgentExposure,
    FileKind,
    file_path,
    likely_kind,
)
from weft.packages.text import documents
from weft.packages.text.documents import Document
from weft.spec.orchestrator import Orchestrator
from weft.spec.part import Part
from weft.spec.workflow import WorkflowSpec, digest


@dataclass(frozen=True)
class DeclaredFile:
    """One declared file: the original document, and its rewritten data."""

    name: str
    document: Document
    rewrite: Rewrite


@dataclass(frozen=True)
class Package:
    """A folder that was read. If a file was refused, `spec` lacks its content.

    A file whose only errors are unknown keys is read without them, or with the likely keys.
    """

    folder: Path
    spec: WorkflowSpec
    files: Mapping[str, DeclaredFile]
    code: Mapping[str, bytes]
    findings: tuple[Finding, ...] = ()
    #: The files in `tests`; they are no part of the digest.
    tests: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    #: Fields of the spec whose file was refused.
    broken: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def name(self) -> str:
        return self.spec.orchestrator.workflow_name

    @cached_property
    def digest(self) -> str:
        """The digest of spec and code, independent of the spelling of the files."""
        return digest(self.spec, self.code)

    def locate(self, path: SpecPath, *, at_key: bool = False, offset: int | None = None) -> Place:
        """Return the place of a value of the spec in the author's files."""
        kind, inner = file_path(path, entry=at_key)
        declared = self.files.get(kind.stem)
        if declared is None:
            return Place(str(self.folder / f"{kind.stem}.json"))
        return declared.document.place(
            declared.rewrite.origin_path(inner), key=at_key, offset=offset
        )


_P = TypeVar("_P", bound=Part)


def read_package(folder: Path) -> Package:
    """Read a package folder. It never raises: errors are in the package's findings."""
    contents = read_folder(folder)
    found: list[Finding] = [*contents.findings]
    files: dict[str, DeclaredFile] = {}
    parts: dict[str, Part] = {}
    misnamed = _misnamed_files(folder, contents)
    found += [_misnamed_finding(folder, stem, name) for stem, name in misnamed.items()]
    for kind in FILE_KINDS.values():
        if kind.stem in misnamed:
            continue
        name, complaint = _choose(folder, kind, contents)
        if complaint:
            found.append(complaint)
        if name is None:
            continue
        declared = _open(folder, name, contents.declared[name])
        files[kind.stem] = declared
        found += declared.document.findings
        if declared.document.ok:
            part, errors = _read_kind(kind, declared)
            found += errors
            if part is not None:
                parts[kind.stem] = part
    return Package(
        folder=folder,
        spec=_assemble(folder, parts),
        files=files,
        code=contents.code,
        findings=tuple(found),
        tests=contents.tests,
        broken=_broken_fields(parts, misnamed, contents),
    )


def read_part(
    declared: DeclaredFile, model: type[_P], holders: Collection[SpecPath] = ()
) -> tuple[_P | None, list[Finding]]:
    """Validate the data of one file; validation errors become findings at their places.

    Where nothing but unknown keys is wrong, there is a part all the same, read without them: rules
    can say what else is wrong. `holders` are the paths at which the file holds what it declares.
    """
    try:
        return _validate(declared, model), []
    except ValidationError as error:
        refused = list(find_problems(error, model))
    errors = [_problem_finding(declared, problem) for problem in refused]
    unknown = [problem for problem in refused if problem.code == "SCHEMA008"]
    if unknown and drop_unknown_keys(declared.rewrite, unknown, holders):
        with suppress(ValidationError):
            return _validate(declared, model), errors
    return None, errors


def _validate(declared: DeclaredFile, model: type[_P]) -> _P:
    return model.model_validate_json(to_json(declared.rewrite.data), strict=True)


def open_document(name: str, document: documents.Document, stem: str) -> DeclaredFile:
    """Bring a document to the present spelling; the rewrite keeps the original paths."""
    rewrite = Rewrite(document.data, document.origin)
    if is_map(rewrite.data):
        rewrite.data.pop("$schema", None)
    if document.ok and stem in DIALECTS:
        DIALECTS[stem](rewrite)
    return DeclaredFile(name, document, rewrite)


def _open(folder: Path, name: str, raw: bytes) -> DeclaredFile:
    document = documents.read(str(folder / name), raw)
    return open_document(name, document, name.partition(".")[0])


def _choose(folder: Path, kind: FileKind, contents: Contents) -> tuple[str | None, Finding | None]:
    """Pick the file of a kind; two of the same kind contradict each other, so neither is read."""
    names = [kind.stem + suffix for suffix in SUFFIXES]
    present = [name for name in names if name in contents.declared]
    if len(present) > 1:
        both = " and ".join(present)
        return None, _finding(
            "SCHEMA011",
            f"{both} both declare the same things",
            Place(str(folder / present[1]), 1, 1),
            hint="keep one of them",
        )
    unknown = not contents.listed or contents.unreadable.intersection(names)
    if not present and kind.required and not unknown:
        return None, _finding(
            "SCHEMA012",
            f"{kind.stem}.json is missing",
            Place(str(folder / f"{kind.stem}.json")),
            hint=_missing_remedy(kind, contents),
        )
    return (present[0] if present else None), None


def _missing_remedy(kind: FileKind, contents: Contents) -> str:
    close = [name for name in contents.others if likely_kind(name) == kind.stem]
    if close:
        return f"if this is {close[0]}, rename it to {kind.stem}{Path(close[0]).suffix.lower()}"
    return "see a complete package: weft new Example --pattern 1"


def _read_kind(kind: FileKind, declared: DeclaredFile) -> tuple[Part | None, list[Finding]]:
    part, errors = read_part(declared, kind.model, kind.holds.values())
    for change in declared.rewrite.changes:
        place = declared.document.place(change.path, key=True)
        hint = "rewrite the package: weft migrate"
        errors.append(_finding("SCHEMA010", f"older spelling: {change.message}", place, hint=hint))
    for contradiction in declared.rewrite.contradictions:
        place = declared.document.place(contradiction.path)
        errors.append(
            _finding("SCHEMA007", contradiction.message, place, hint="give both the same name")
        )
    return (None if declared.rewrite.contradictions else part), errors


def _problem_finding(declared: DeclaredFile, problem: Problem) -> Finding:
    origin = declared.rewrite.origin_path(problem.path)
    place = declared.document.place(origin, key=problem.at_key, offset=problem.offset)
    hint, fix = problem.hint, None
    if problem.rename and slug(problem.rename) == slug(str(problem.path[-1])):
        around = reduce(child, origin[:-1], declared.document.data)
        if is_map(around) and problem.rename in around:
            hint = (f'"{problem.rename}" is there as well: keep one of the two',)
        else:
            rename = RenameKey(origin, problem.rename)
            fix = Fix(f'rename the key to "{problem.rename}"', (rename,), file=declared.name)
    return Finding(
        code=problem.code,
        severity=CATALOGUE[problem.code].severity,
        message=_message_with_path(problem),
        place=place,
        hint=hint,
        fix=fix,
    )


def _message_with_path(problem: Problem) -> str:
    """Begin a message with the path, so that it can be understood without the file."""
    steps = problem.path[:-1] if problem.code in {"SCHEMA008", "SCHEMA009"} else problem.path
    text = path_text(steps)
    # A damaged file may have keys of several lines.
    message = " ".join(problem.message.split("\n"))
    return f"{text}: {message}" if text else message


def _misnamed_files(folder: Path, contents: Contents) -> dict[str, str]:
    """Find misnamed files, by the kind of file each must be.

    The name alone is not enough: books.json is close to hooks.json. The keys in the file decide.
    """
    present = {name.partition(".")[0] for name in (*contents.declared, *contents.unreadable)}
    meant: dict[str, str] = {}
    for name in contents.others:
        stem = likely_kind(name)
        if stem and stem not in present and _has_keys_of(FILE_KINDS[stem], folder, name):
            meant.setdefault(stem, name)
    return meant


def _has_keys_of(kind: FileKind, folder: Path, name: str) -> bool:
    """Return whether a file has keys of a kind of package file, in any spelling."""
    raw = read_bytes(folder / name, folder)
    if not isinstance(raw, bytes):
        return False
    document = documents.read(str(folder / name), raw)
    data = open_document(name, document, kind.stem).rewrite.data
    known = {field.alias or key for key, field in kind.model.model_fields.items()}
    return any(
        reduce(child, inner, data) is not None if inner else is_map(data) and known & data.keys()
        for inner in kind.holds.values()
    )


def _misnamed_finding(folder: Path, stem: str, name: str) -> Finding:
    return _finding(
        "SCHEMA013",
        f"{name} is not read: no file of a package has this name",
        Place(str(folder / name), 1, 1),
        hint=f"rename it to {stem}{Path(name).suffix.lower()}",
    )


def _broken_fields(
    parts: Mapping[str, Part], misnamed: Mapping[str, str], contents: Contents
) -> frozenset[str]:
    """The fields of the spec whose file is there, or must be, and could not be understood."""
    names = (*contents.declared, *contents.unreadable)
    present = {*misnamed, *(name.partition(".")[0] for name in names)}
    fields = {
        field
        for stem, kind in FILE_KINDS.items()
        if stem not in parts and (stem in present or kind.required or not contents.listed)
        for field in kind.holds
    }
    unread_code = any(Path(name).suffix not in SUFFIXES for name in contents.unreadable)
    return frozenset(fields | ({"code"} if unread_code else set()))


def _assemble(folder: Path, parts: Mapping[str, Part]) -> WorkflowSpec:
    """Build the spec. Missing parts stay empty; `broken` makes rules skip them."""
    name = folder.name.encode(errors="replace").decode() or "Workflow"
    stand_in = Orchestrator(workflow_name=name, initial_agent="?")
    fields: dict[str, Any] = {"orchestrator": stand_in}
    for stem, part in parts.items():
        for name, inner in FILE_KINDS[stem].holds.items():
            fields[name] = reduce(getattr, [str(step) for step in inner], part)
    exposure: dict[str, AgentExposure] = fields.get("exposure", {})
    fields["exposure"] = {agent: entry.variables for agent, entry in exposure.items()}
    return WorkflowSpec(**fields)


def _finding(code: str, message: str, place: Place, *, hint: str) -> Finding:
    return Finding(code, CATALOGUE[code].severity, message, place, hint=(hint,))


def drop_unknown_keys(
    rewrite: Rewrite, unknown: Iterable[Problem], holders: Collection[SpecPath]
) -> bool:
    """Correct misspelt keys, and remove the other unknown keys.

    Returns whether the rest can be judged. It cannot where a list or object is taken away that
    stands where the file holds all it declares, at `holders`: its author may have meant that, and
    everything else would be blamed for what is not there.
    """
    for problem in unknown:
        *parent, key = problem.path
        container = reduce(child, parent, rewrite.data)
        if not is_map(container):
            return False
        if problem.rename is not None:
            rewrite.rename(container, str(key), problem.rename, None)
        value = container.pop(str(key), None)
        if (is_map(value) or is_list(value)) and _may_hold_all(tuple(parent), holders):
            return False
    return True


def _may_hold_all(parent: SpecPath, holders: Collection[SpecPath]) -> bool:
    return any(len(parent) < len(path) and path[: len(parent)] == parent for path in holders)
