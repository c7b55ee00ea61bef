"""Tools and hooks with the code they declare: what is wrong with where it is, what is left over."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from weft.check.board_parts import references as board_references
from weft.check.code.facts import code_of, module_file, module_names, path_in
from weft.check.code.functions import PLAIN_NAME, Function, not_given
from weft.check.code.modules import Module
from weft.check.declarations import placed_triggers
from weft.check.flow_parts import references as flow_references
from weft.check.spelling import did_you_mean, listed
from weft.check.subject import Hit, Subject, listed_once
from weft.engine.compiled import AFTER_RUN, BEFORE_RUN
from weft.findings import Fix, Path, Place, SetValue
from weft.ids import FUNCTION_REF, nearest, slug
from weft.spec.tools import (
    BUILT_IN_TOOLS,
    AgentTool,
    Hook,
    LifecycleTool,
    UiTool,
    is_built_in,
    is_outside_package,
)
from weft.spec.triggers import FunctionTrigger
from weft.spec.variables import ComputedSource

Folder: TypeAlias = Literal["tools", "hooks"]

#: The boundaries of the run itself, which belong to no agent.
RUN_POINTS: Final = frozenset({*BEFORE_RUN, *AFTER_RUN})
#: What functions take by name at boundaries; at those of the run itself there is no agent.
GIVEN: Final = (
    *(PLAIN_NAME, "messages", "message", "content"),
    *("agent", "sender", "recipient", "silent"),
)
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
        return f"the {self.folder.removesuffix('s')} {self.declared.function}"


AnyEntry: TypeAlias = Entry[AgentTool | UiTool | LifecycleTool | Hook]


@listed_once
def tool_entries(subject: Subject) -> Iterator[Entry[AgentTool | UiTool]]:
    return _entries(subject, "tools", "tools", subject.spec.tools)


@listed_once
def lifecycle_entries(subject: Subject) -> Iterator[Entry[LifecycleTool]]:
    return _entries(subject, "tools", "lifecycle_tools", subject.spec.lifecycle_tools)


@listed_once
def hook_entries(subject: Subject) -> Iterator[Entry[Hook]]:
    return _entries(subject, "hooks", "hooks", subject.spec.hooks)


def all_tool_entries(subject: Subject) -> tuple[Entry[AgentTool | UiTool | LifecycleTool], ...]:
    return (*tool_entries(subject), *lifecycle_entries(subject))


def all_entries(subject: Subject) -> tuple[AnyEntry, ...]:
    """Return all that declares code: tools of either kind, and hooks."""
    return (*all_tool_entries(subject), *hook_entries(subject))


def _entries(
    subject: Subject, folder: Folder, key: str, declared: Iterable[Declared_co]
) -> Iterator[Entry[Declared_co]]:
    modules = code_of(subject).modules
    for index, one in enumerate(declared):
        if is_outside_package(one):
            continue
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


def misfits_at(
    entry: Entry[LifecycleTool | Hook], module: Module, function: Function, point: str
) -> Iterator[Hit]:
    """Report what a function requires and is not given at its point."""
    lacking = not_given(function, GIVEN)
    if lacking:
        first = lacking[0]
        meant = (f'did you mean "{PLAIN_NAME}"?',) if first.injected else ()
        yield Hit(
            (*entry.path, "function"),
            f"{point} calls {function.name} without {listed(it.name for it in lacking)}, "
            "which it requires",
            cause=(f"it may take {listed(GIVEN)}",),
            hint=meant
            or did_you_mean(first.name, GIVEN)
            or ("name one of these, or give the parameter a default value",),
            place=module.place(first.spot),
        )


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
    """Report each function that its file lacks, once."""
    wanted: dict[tuple[str, str], list[tuple[AnyEntry, Module]]] = {}
    for entry in entries:
        name, module = entry.declared.function, entry.module
        if module and not module.defines(name):
            wanted.setdefault((module.path, name), []).append((entry, module))
    for (file, name), found in wanted.items():
        entry, module = found[0]
        others = module.functions or module.definitions
        yield Hit(
            (*entry.path, "function"),
            f"{file} does not define the function {name}",
            hint=did_you_mean(name, others) or (f"define {name} in {file}",),
            fix=_respelling([one for one, _ in found], "function", name, sorted(others)),
        )


def missing_built_ins(subject: Subject) -> Iterator[Hit]:
    """Report the tools that should come with Weft, and do not."""
    for index, tool in enumerate(subject.spec.tools):
        if is_built_in(tool) and tool.function not in BUILT_IN_TOOLS:
            yield Hit(
                ("tools", index, "function"),
                f"no tool {tool.function} comes with Weft",
                hint=did_you_mean(tool.function, BUILT_IN_TOOLS)
                or (f"name one of {listed(BUILT_IN_TOOLS)}, or a Python file under tools/",),
            )


def _respelling(
    entries: Iterable[AnyEntry], key: str, name: str, known: Iterable[str]
) -> Fix | None:
    """Return the fix that writes a name as the code spells it, wherever it is declared."""
    same = [one for one in known if slug(name) and slug(one) == slug(name)]
    edits = tuple(SetValue((*entry.path, key), same[0]) for entry in entries if len(same) == 1)
    return Fix(f'write "{same[0]}" for "{name}"', edits) if edits else None


def paths_outside(subject: Subject, entries: Iterable[AnyEntry]) -> Iterator[Hit]:
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


def unused_files(subject: Subject, folder: Folder, file_of_declarations: str) -> Iterator[Hit]:
    if code_of(subject).faults:
        return  # what a broken file imports is not known
    used = _files_in_use(subject)
    for name in files_under(subject, folder):
        file = f"{folder}/{name}"
        if file not in used and not name.endswith("__init__.py"):
            yield Hit(
                (),
                f"nothing refers to {file}",
                hint=(f"declare its function in {file_of_declarations}, or delete the file",),
                place=Place(file, 1, 1),
            )


def _files_in_use(subject: Subject) -> set[str]:
    entries = all_entries(subject)
    used = {file for entry in entries if (file := _file_meant(subject, entry))}
    modules = [reference.partition(":")[0] for reference in _references(subject)]
    used.update(file for name in modules if (file := _module_meant(subject, name)))
    for path, module in code_of(subject).modules.items():
        used |= module.imports - {path}
    return used


def _file_meant(subject: Subject, entry: AnyEntry) -> str | None:
    """Return the declared file; one that is misspelt stands for the one that was likely meant."""
    if entry.file in subject.code:
        return entry.file
    near = nearest(entry.declared.file, files_under(subject, entry.folder))
    return f"{entry.folder}/{near}" if near else None


def _module_meant(subject: Subject, name: str) -> str | None:
    near = name if module_file(subject, name) else nearest(name, module_names(subject))
    return module_file(subject, near) if near else None


def _references(subject: Subject) -> Iterator[str]:
    """Yield every `module:function` of the workflow."""
    for extension in subject.spec.orchestrator.runtime_extensions:
        yield extension.entrypoint
    yield from (it.function for it in subject.groups.values() if it.function)
    for _, source in subject.sources(ComputedSource):
        if FUNCTION_REF.match(source.computation):
            yield source.computation
    for placed in placed_triggers(subject):
        if isinstance(placed.trigger, FunctionTrigger):
            yield placed.trigger.function
    yield from (reference for _, reference in flow_references(subject))
    yield from (reference for _, reference in board_references(subject))
