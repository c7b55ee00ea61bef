"""CODE001 to CODE006: functions and classes in code, wherever a declaration names them.

Tools and hooks name a file and a function; everything else names `module:function`.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from weft.check.board_parts import LOCAL
from weft.check.code.facts import (
    Missing,
    code_of,
    function_at,
    function_named,
    missing_function,
    module_file,
    module_names,
    path_in,
)
from weft.check.code.functions import PLAIN_NAME, Function, not_given
from weft.check.code.modules import Module
from weft.check.code.references import OBJECTS, REFERENCES, code_references
from weft.check.declarations import automatic_tools, bound_model
from weft.check.spelling import did_you_mean, listed
from weft.check.subject import CONVERSATION, CheckRule, Hit, Subject, listed_once, rule
from weft.engine.compiled import AFTER_RUN, BEFORE_RUN
from weft.findings import Fix, Path, Place, SetValue
from weft.ids import nearest, slug
from weft.spec.tools import (
    BUILT_IN_TOOLS,
    AgentTool,
    Hook,
    LifecycleTool,
    UiTool,
    is_built_in,
    is_outside_package,
)

Folder: TypeAlias = Literal["tools", "hooks"]

#: The hook points of the run itself, which belong to no agent.
RUN_POINTS: Final = frozenset({*BEFORE_RUN, *AFTER_RUN})
#: The parameters of hooks and lifecycle tools; at the hook points of the run `agent` is None.
GIVEN: Final = (
    *(PLAIN_NAME, "messages", "message", "content"),
    *("agent", "sender", "recipient", "silent"),
)

Declared_co = TypeVar(
    "Declared_co", bound=AgentTool | UiTool | LifecycleTool | Hook, covariant=True
)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Declared_co]):
    """A tool or hook: its place in the spec, and where its code should be.

    `file` is None if the declared path is not inside the folder; `module` is None if the file is
    missing or cannot be parsed; `function` is None if it is missing or imported.
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
    """Return all tools and hooks with code in the package."""
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
    """Yield the entries whose function is defined in their file, so that its signature is known."""
    for entry in entries:
        if entry.module and entry.function:
            yield entry, entry.module, entry.function


def functions_meant(subject: Subject) -> set[str]:
    """Return the right names of functions that tools and hooks misspell.

    CODE002 reports the misspelt ones. Another declaration with the right name is correct.
    """
    near = [
        nearest(entry.declared.function, entry.module.functions)
        for entry in all_entries(subject)
        if entry.module and not entry.module.defines(entry.declared.function)
    ]
    return {name for name in near if name}


def files_under(subject: Subject, folder: Folder) -> list[str]:
    """Return the Python files of a folder, relative to it."""
    return [
        path.removeprefix(f"{folder}/")
        for path in subject.code
        if path.startswith(f"{folder}/") and path.endswith(".py")
    ]


# -- CODE001, CODE002, CODE005: files and functions of tools and hooks


@rule("CODE001", "tools", "lifecycle_tools", "code")
def tool_file_exists(subject: Subject) -> Iterator[Hit]:
    return _missing_files(subject, all_tool_entries(subject))


@rule("CODE001", "hooks", "code")
def hook_file_exists(subject: Subject) -> Iterator[Hit]:
    return _missing_files(subject, hook_entries(subject))


def _missing_files(subject: Subject, entries: Iterable[AnyEntry]) -> Iterator[Hit]:
    """Report each missing file once, where it is named first."""
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
            f"{entry.name} is declared in missing file {file}",
            cause=(f"{listed(more)} must be defined there as well",) if more else (),
            hint=did_you_mean(named, known)
            or (f"create {file} and define {entry.declared.function} in it",),
            fix=_respelling([entry, *others], "file", named, known),
        )


@rule("CODE002", "tools", "lifecycle_tools", "code")
def tool_function_exists(subject: Subject) -> Iterator[Hit]:
    yield from _missing_functions(all_tool_entries(subject))
    for index, tool in enumerate(subject.spec.tools):
        if is_built_in(tool) and tool.function not in BUILT_IN_TOOLS:
            yield Hit(
                ("tools", index, "function"),
                f"Weft has no built-in tool {tool.function}",
                hint=did_you_mean(tool.function, BUILT_IN_TOOLS)
                or (f"use {listed(BUILT_IN_TOOLS)}, or a Python file under tools/",),
            )


@rule("CODE002", "hooks", "code")
def hook_function_exists(subject: Subject) -> Iterator[Hit]:
    return _missing_functions(hook_entries(subject))


def _missing_functions(entries: Iterable[AnyEntry]) -> Iterator[Hit]:
    """Report each missing function once."""
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


def _respelling(
    entries: Iterable[AnyEntry], key: str, name: str, known: Iterable[str]
) -> Fix | None:
    """Return the fix that writes a name as the code spells it, in every declaration."""
    same = [one for one in known if slug(name) and slug(one) == slug(name)]
    edits = tuple(SetValue((*entry.path, key), same[0]) for entry in entries if len(same) == 1)
    return Fix(f'write "{same[0]}" for "{name}"', edits) if edits else None


@rule("CODE005", "tools", "lifecycle_tools")
def tool_file_is_inside(subject: Subject) -> Iterator[Hit]:
    return _paths_outside(subject, all_tool_entries(subject))


@rule("CODE005", "hooks")
def hook_file_is_inside(subject: Subject) -> Iterator[Hit]:
    return _paths_outside(subject, hook_entries(subject))


def _paths_outside(subject: Subject, entries: Iterable[AnyEntry]) -> Iterator[Hit]:
    for entry in entries:
        if entry.file is None:
            path, file = (*entry.path, "file"), entry.declared.file
            forward = file.replace("\\", "/")
            known = path_in(entry.folder, forward, subject.code) in subject.code
            yield Hit(
                path,
                f'"{file}" is not a path to a Python file under {entry.folder}/',
                hint=(
                    f"write a path relative to {entry.folder}/ with forward slashes: example.py",
                ),
                fix=Fix("write forward slashes", (SetValue(path, forward),)) if known else None,
            )


@rule("CODE003", "code")
def file_parses(subject: Subject) -> Iterator[Hit]:
    for file, error in code_of(subject).faults.items():
        yield Hit(
            (),
            f"{file} is not valid Python: {error.msg}",
            hint=("correct the file; nothing in it can be checked before",),
            place=Place(file, max(error.lineno or 1, 1), max(error.offset or 1, 1)),
        )


# -- CODE002, CODE004, CODE006: `module:function`


#: Folders of a package: a module in one of them is not an installed one.
_OWN: Final = frozenset({"tools", "hooks", "workflows"})


def _missing_references(root: str, subject: Subject) -> Iterator[Hit]:
    for reference in code_references(root, subject):
        if root in OBJECTS:
            missing = _missing_object(subject, reference.reference)
        else:
            # A server may name the module from the workspace.
            mounted = "runtime_extensions" in reference.path
            missing = missing_function(subject, reference.reference, mounted=mounted)
        if missing:
            message = f"{reference.what} is not found: {missing.fact}"
            yield Hit(reference.path, message, hint=missing.hint, severity=missing.severity)


def _missing_object(subject: Subject, reference: str) -> Missing | None:
    """Say why an object is found neither in the package nor among the installed modules."""
    module, _, name = reference.partition(":")
    if reference.startswith(LOCAL):
        return None
    if _is_own(subject, module):
        return missing_function(subject, f"{module}:{name.partition('.')[0]}")
    if not subject.folder or subject.is_installed is None or subject.is_installed(module):
        return None
    fact = f"{module} is neither a file of the package nor installed here"
    hint = f"copy {module.replace('.', '/')}.py into the package, or install {module} where it runs"
    return Missing(fact, (hint,), "warning")


def _is_own(subject: Subject, module: str) -> bool:
    """Return whether a module is meant to be a file of the package."""
    if module_file(subject, module) or nearest(module, module_names(subject)):
        return True
    return bool(subject.folder) and module.partition(".")[0] in _OWN


def _objects_of_programs(root: str, subject: Subject) -> Iterator[Hit]:
    if not subject.folder:
        return  # the workflow is defined in code, which may name its own objects
    for reference in code_references(root, subject):
        if reference.reference.startswith(LOCAL):
            name = reference.reference.removeprefix(LOCAL)
            yield Hit(
                reference.path,
                f"{reference.reference} exists only in the program that defines it,"
                " not in a package",
                hint=(f"move {name} into a file of the package: tools.code:{name}",),
            )


def _unsatisfied_references(root: str, subject: Subject) -> Iterator[Hit]:
    for reference in code_references(root, subject):
        found, given = function_named(subject, reference.reference), reference.given
        if found and given is not None:
            known = [name for name in subject.variable_names if name not in given]
            yield from _missing_parameters(reference.path, found[1], given, reference.what, known)


def _missing_parameters(
    path: Path, function: Function, given: Collection[str], what: str, inputs: Collection[str] = ()
) -> Iterator[Hit]:
    """Report the parameters that a function requires and that it is not given."""
    names = [parameter.name for parameter in not_given(function, given)]
    if not names:
        return
    addable = [name for name in names if name in inputs]
    hint = (
        (f'add "{addable[0]}" to "inputs"',)
        if addable
        else did_you_mean(names[0], given) or ("rename the parameter, or give it a default value",)
    )
    yield Hit(
        path,
        f"{what} requires {listed(names)}, which it is not given",
        cause=(f"it is given {listed(given)}",) if given else (),
        hint=hint,
    )


REFERENCE_RULES: Final = tuple(
    CheckRule(code, frozenset({root, *reads}), partial(check, root))
    for code, check, reads, roots in (
        ("CODE002", _missing_references, ("code",), REFERENCES),
        ("CODE004", _unsatisfied_references, ("code",), ("variables",)),
        ("CODE006", _objects_of_programs, (), OBJECTS),
    )
    for root in roots
)


# -- CODE004: parameters of tools and hooks


@rule("CODE004", "lifecycle_tools", "code")
def lifecycle_tool_can_be_called(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(lifecycle_entries(subject)):
        yield from _called_at(entry, module, function, entry.declared.trigger)


@rule("CODE004", "hooks", "code")
def hook_can_be_called(subject: Subject) -> Iterator[Hit]:
    for entry, module, function in with_code(hook_entries(subject)):
        yield from _called_at(entry, module, function, entry.declared.hook_type)


def _called_at(
    entry: Entry[LifecycleTool | Hook], module: Module, function: Function, point: str
) -> Iterator[Hit]:
    """Report the parameters that a function requires and that it is not given at a hook point."""
    lacking = not_given(function, GIVEN)
    if lacking:
        first = lacking[0]
        context = (f'did you mean "{PLAIN_NAME}"?',) if first.injected else ()
        yield Hit(
            (*entry.path, "function"),
            f"{function.name} requires {listed(parameter.name for parameter in lacking)}, "
            f"which {point} does not give it",
            cause=(f"it may take {listed(GIVEN)}",),
            hint=context
            or did_you_mean(first.name, GIVEN)
            or ("rename the parameter, or give it a default value",),
            place=module.place(first.spot),
        )


@rule("CODE004", "tools", "agents", "models", "registry", "code", modes=CONVERSATION)
def output_gives_arguments(subject: Subject) -> Iterator[Hit]:
    """Check that the structured output of an agent has the arguments of its automatic tool."""
    for agent in subject.agents:
        model = bound_model(subject, agent)
        fields = subject.models.get(model or "")
        if fields is None:
            continue
        for index, tool in automatic_tools(subject, agent):
            function = function_at(subject, "tools", tool.file, tool.function)
            if function is None or function.decorated:
                continue
            lacking = [
                parameter.name
                for parameter in function.parameters
                if parameter.required and not parameter.injected and parameter.name not in fields
            ]
            if lacking:
                yield Hit(
                    ("tools", index, "function"),
                    f"{tool.function} requires {listed(lacking)}, which {model} does not have",
                    cause=(f"the fields of {model} are {listed(fields)}",) if fields else (),
                    hint=did_you_mean(lacking[0], fields)
                    or (f"add the field to {model}, or give the parameter a default value",),
                )
