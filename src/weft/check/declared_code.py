"""Tools and hooks with the code they declare, and what can be wrong with where it should be."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.check.code_facts import code_of, path_in
from weft.check.module_facts import Function, Module
from weft.check.spelling import listed
from weft.check.subject import Hit, Subject
from weft.check.suggestions import did_you_mean, respelling
from weft.findings import Fix, Path, SetValue
from weft.spec.hooks import Hook
from weft.spec.tools import AgentTool, LifecycleTool, UiTool

Folder: TypeAlias = Literal["tools", "hooks"]
Declared: TypeAlias = AgentTool | UiTool | LifecycleTool | Hook


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool or hook: where it stands in the spec, and where its code should be.

    `file` is None if the declared path is none inside the folder; `module` is None if the file is
    missing or no Python; `function` is None if it is missing or comes from elsewhere.
    """

    path: Path
    declared: Declared
    folder: Folder
    file: str | None
    module: Module | None
    function: Function | None

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"the {self.folder.removesuffix('s')} {self.declared.function}"


def tool_entries(subject: Subject) -> Iterator[Entry]:
    """Yield every declared tool, those of the lifecycle last."""
    yield from _entries(subject, "tools", "tools", subject.spec.tools)
    yield from _entries(subject, "tools", "lifecycle_tools", subject.spec.lifecycle_tools)


def hook_entries(subject: Subject) -> Iterator[Entry]:
    """Yield every declared hook."""
    return _entries(subject, "hooks", "hooks", subject.spec.hooks)


def _entries(
    subject: Subject, folder: Folder, key: str, declared: Iterable[Declared]
) -> Iterator[Entry]:
    modules = code_of(subject).modules
    for index, one in enumerate(declared):
        file = path_in(folder, one.file, subject.code)
        module = modules.get(file or "")
        function = module.functions.get(one.function) if module else None
        yield Entry((key, index), one, folder, file, module, function)


def missing_files(subject: Subject, entries: Iterable[Entry]) -> Iterator[Hit]:
    """Report each file that is not there, once, where it is named first."""
    wanted: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.file is not None and entry.file not in subject.code:
            wanted.setdefault(entry.file, []).append(entry)
    for file, (entry, *others) in wanted.items():
        path, function = (*entry.path, "file"), entry.declared.function
        named = entry.declared.file.removeprefix(f"{entry.folder}/")
        known = files_under(subject, entry.folder)
        more = list(dict.fromkeys(other.declared.function for other in others))
        yield Hit(
            path,
            f"{entry.name} is declared in {file}, which does not exist",
            cause=(f"{listed(more)} should be there too",) if more else (),
            hint=did_you_mean(named, known) or (f"write {file} with {function} in it",),
            fix=None if more else respelling(path, named, known),
        )


def missing_functions(entries: Iterable[Entry]) -> Iterator[Hit]:
    """Report each function that its file neither defines nor imports."""
    for entry in entries:
        name = entry.declared.function
        if entry.module and not entry.module.defines(name):
            path = (*entry.path, "function")
            known = entry.module.functions or entry.module.definitions
            yield Hit(
                path,
                f"{entry.file} does not define the function {name}",
                hint=did_you_mean(name, known) or (f"define {name} in {entry.file}",),
                fix=respelling(path, name, known),
            )


def paths_outside(subject: Subject, entries: Iterable[Entry]) -> Iterator[Hit]:
    """Report each declared file that is no Python file inside the folder."""
    for entry in entries:
        if entry.file is None:
            path, file = (*entry.path, "file"), entry.declared.file
            forward = file.replace("\\", "/")
            known = path_in(entry.folder, forward, subject.code) in subject.code
            yield Hit(
                path,
                f'"{file}" is no path to a Python file under {entry.folder}/',
                hint=(f"write the path from {entry.folder}/ on, with forward slashes: example.py",),
                fix=Fix("write forward slashes", (SetValue(path, forward),)) if known else None,
            )


def files_under(subject: Subject, folder: Folder) -> list[str]:
    """Return the Python files of a folder, by their path from there on."""
    return [
        path.removeprefix(f"{folder}/")
        for path in subject.code
        if path.startswith(f"{folder}/") and path.endswith(".py")
    ]
