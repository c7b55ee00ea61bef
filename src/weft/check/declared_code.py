"""Tools and hooks with the code they declare, and what can be wrong with where it should be."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, Literal, TypeAlias, TypeVar

from weft.check.code_facts import code_of, path_in
from weft.check.module_facts import Module
from weft.check.signatures import Function
from weft.check.spelling import listed
from weft.check.subject import Hit, Subject
from weft.check.suggestions import did_you_mean
from weft.findings import Fix, Path, SetValue
from weft.ids import slug
from weft.spec.hooks import Hook
from weft.spec.tools import AgentTool, LifecycleTool, UiTool

Folder: TypeAlias = Literal["tools", "hooks"]
Declared_co = TypeVar(
    "Declared_co", bound=AgentTool | UiTool | LifecycleTool | Hook, covariant=True
)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Declared_co]):
    """A tool or hook: where it stands in the spec, and where its code should be.

    `file` is None if the declared path is none inside the folder; `module` is None if the file is
    missing or no Python; `function` is None if it is missing or comes from elsewhere.
    """

    path: Path
    declared: Declared_co
    folder: Folder
    file: str | None
    module: Module | None
    function: Function | None

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"the {self.folder.removesuffix('s')} {self.declared.function}"


AnyEntry: TypeAlias = Entry[AgentTool | UiTool | LifecycleTool | Hook]


def tool_entries(subject: Subject) -> Iterator[Entry[AgentTool | UiTool]]:
    """Yield every tool that an agent's model may call."""
    return _entries(subject, "tools", "tools", subject.spec.tools)


def lifecycle_entries(subject: Subject) -> Iterator[Entry[LifecycleTool]]:
    """Yield every lifecycle tool."""
    return _entries(subject, "tools", "lifecycle_tools", subject.spec.lifecycle_tools)


def hook_entries(subject: Subject) -> Iterator[Entry[Hook]]:
    """Yield every hook."""
    return _entries(subject, "hooks", "hooks", subject.spec.hooks)


def all_tool_entries(subject: Subject) -> Iterator[Entry[AgentTool | UiTool | LifecycleTool]]:
    """Yield every tool of either kind."""
    return chain(tool_entries(subject), lifecycle_entries(subject))


def _entries(
    subject: Subject, folder: Folder, key: str, declared: Iterable[Declared_co]
) -> Iterator[Entry[Declared_co]]:
    modules = code_of(subject).modules
    for index, one in enumerate(declared):
        file = path_in(folder, one.file, subject.code)
        module = modules.get(file or "")
        function = module.functions.get(one.function) if module else None
        yield Entry((key, index), one, folder, file, module, function)


def with_code(
    entries: Iterable[Entry[Declared_co]],
) -> Iterator[tuple[Entry[Declared_co], Module, Function]]:
    """Yield those whose function is defined in their own file, so that its signature is known."""
    for entry in entries:
        if entry.module and entry.function:
            yield entry, entry.module, entry.function


def missing_files(subject: Subject, entries: Iterable[AnyEntry]) -> Iterator[Hit]:
    """Report each file that is not there, once, where it is named first."""
    wanted: dict[str, list[AnyEntry]] = {}
    for entry in entries:
        if entry.file is not None and entry.file not in subject.code:
            wanted.setdefault(entry.file, []).append(entry)
    for file, (entry, *others) in wanted.items():
        named = entry.declared.file.removeprefix(f"{entry.folder}/")
        known = files_under(subject, entry.folder)
        more = list(dict.fromkeys(other.declared.function for other in others))
        yield Hit(
            (*entry.path, "file"),
            f"{entry.name} is declared in {file}, which does not exist",
            cause=(f"{listed(more)} should be there too",) if more else (),
            hint=did_you_mean(named, known)
            or (f"write {file} with {entry.declared.function} in it",),
            fix=_respelling([entry, *others], "file", named, known),
        )


def missing_functions(entries: Iterable[AnyEntry]) -> Iterator[Hit]:
    """Report each function that its file neither defines nor imports, once."""
    wanted: dict[tuple[str, str], list[tuple[AnyEntry, Module]]] = {}
    for entry in entries:
        name, module = entry.declared.function, entry.module
        if module and not module.defines(name):
            wanted.setdefault((module.path, name), []).append((entry, module))
    for (file, name), found in wanted.items():
        entry, module = found[0]
        known = module.functions or module.definitions
        yield Hit(
            (*entry.path, "function"),
            f"{file} does not define the function {name}",
            hint=did_you_mean(name, known) or (f"define {name} in {file}",),
            fix=_respelling([one for one, _ in found], "function", name, known),
        )


def _respelling(
    entries: Iterable[AnyEntry], key: str, name: str, known: Iterable[str]
) -> Fix | None:
    """Return the fix that writes a name as the code spells it, wherever it is declared."""
    same = [one for one in known if slug(name) and slug(one) == slug(name)]
    edits = tuple(SetValue((*entry.path, key), same[0]) for entry in entries if len(same) == 1)
    return Fix(f'write "{same[0]}" for "{name}"', edits) if edits else None


def paths_outside(subject: Subject, entries: Iterable[AnyEntry]) -> Iterator[Hit]:
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
