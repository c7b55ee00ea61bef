"""The functions in the code of a package, and how they are called.

Everything is read from the text of the files. Nothing is imported or run.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from weft.check.code.functions import Function
from weft.check.code.modules import OWN_SIGNAL, Definition, Module, file_of, read_module
from weft.check.subject import Subject
from weft.findings import Severity
from weft.ids import nearest


@dataclass(frozen=True)
class Code:
    """The Python files of a package: those that parse, and those that do not."""

    modules: dict[str, Module]
    faults: dict[str, SyntaxError]
    #: The definitions that each function uses, by file and name; filled on demand.
    followed: dict[tuple[str, str], tuple[Definition, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Definition, ...]]
    )


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a function is missing, and the name that was probably meant."""

    fact: str
    hint: tuple[str, ...] = ()
    #: None: the severity of the rule.
    severity: Severity | None = None


def code_of(subject: Subject) -> Code:
    """Return the parsed code of a package; it is parsed once."""
    return subject.once(_code)


def _code(subject: Subject) -> Code:
    return _read(tuple(subject.code.items()))


# The content itself is the key: a package that has not changed is not read again, and no more
# than the last few packages are kept.
@lru_cache(maxsize=4)
def _read(files: tuple[tuple[str, str], ...]) -> Code:
    texts = dict(files)
    modules: dict[str, Module] = {}
    faults: dict[str, SyntaxError] = {}
    for path, text in files:
        if path.endswith(".py"):
            found = read_module(path, text, texts)
            if isinstance(found, Module):
                modules[path] = found
            else:
                faults[path] = found
    return Code(modules, faults)


def path_in(folder: str, file: str, code: Container[str]) -> str | None:
    """Return the path of a declared file in the package, or None if it leads elsewhere.

    `file` is relative to `folder`; it may also begin with the folder.

    >>> [path_in("tools", file, {}) for file in ("a.py", "tools/a.py", "/a.py")]
    ['tools/a.py', 'tools/a.py', None]
    """
    parts = file.split("/")
    if not file.endswith(".py") or not file.isprintable() or "\\" in file or ":" in file:
        return None
    if any(part in {"", ".", ".."} for part in parts):
        return None
    inside = f"{folder}/{file}"
    return file if parts[0] == folder and len(parts) > 1 and inside not in code else inside


def function_at(subject: Subject, folder: str, file: str, name: str) -> Function | None:
    """Return the function of a file; None if it is missing, or imported from elsewhere."""
    module = code_of(subject).modules.get(path_in(folder, file, subject.code) or "")
    return module.functions.get(name) if module else None


def module_file(subject: Subject, module: str) -> str | None:
    """Return the file of a module named from the package folder or from the workspace."""
    parts = module.split(".")
    own = {subject.folder, subject.spec.orchestrator.workflow_name}
    if parts[0] == "workflows" and len(parts) > 2 and parts[1] in own:
        parts = parts[2:]
    return file_of(parts, subject.code)


def function_named(subject: Subject, reference: str) -> tuple[Module, Function] | None:
    """Return the function that `module:function` names, if that file defines it."""
    module, _, name = reference.partition(":")
    found = code_of(subject).modules.get(module_file(subject, module) or "")
    return (found, found.functions[name]) if found and name in found.functions else None


def missing_function(subject: Subject, reference: str, *, mounted: bool = False) -> Missing | None:
    """Return why `module:function` cannot be found in the code; None if it can.

    Runs know a module by its path in the package; what a server mounts may be named from the
    workspace on. A file that does not parse is reported by itself, so its functions do not count as
    missing.
    """
    module, _, name = reference.partition(":")
    path = module_file(subject, module)
    if path is None or not (mounted or path == f"{module.replace('.', '/')}.py"):
        own = path.removesuffix(".py").replace("/", ".") if path else None
        near = own or nearest(module, module_names(subject))
        hint = f"did you mean {near}:{name}?" if near else f"add the file {_module_path(module)}"
        return Missing(f"no file of the package is the module {module}", (hint,))
    found = code_of(subject).modules.get(path)
    if found is None or found.defines(name):
        return None
    near = nearest(name, found.definitions)
    hint = f"did you mean {module}:{near}?" if near else f"define {name} in {path}"
    return Missing(f"{path} does not define {name}", (hint,))


def module_names(subject: Subject) -> Iterator[str]:
    for path in subject.code:
        if path.endswith(".py"):
            yield path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _module_path(module: str) -> str:
    parts = module.split(".")
    return "/".join(parts[2:] if parts[0] == "workflows" and len(parts) > 2 else parts) + ".py"


def asked_of(subject: Subject, path: str, name: str) -> frozenset[str | None]:
    """Return the UI tools that a function shows, itself or through the code it uses.

    They include None if the code does not show which tool it is.
    """
    used = reachable(subject, path, name)
    if not used:
        return frozenset({None})
    found = frozenset(tool for definition in used for tool, *_ in definition.asked)
    by_signal = any(OWN_SIGNAL in definition.mentions for definition in used)
    return found | {name} if by_signal else found


def reachable(subject: Subject, path: str, name: str) -> tuple[Definition, ...]:
    """Return a top-level definition and all definitions that it uses, directly or indirectly."""
    code = code_of(subject)
    if (path, name) not in code.followed:
        code.followed[path, name] = tuple(_reachable(code.modules, path, name))
    return code.followed[path, name]


def _reachable(modules: Mapping[str, Module], path: str, name: str) -> Iterator[Definition]:
    waiting, seen = [(path, name)], {(path, name)}
    while waiting:
        path, name = waiting.pop()
        module = modules.get(path)
        if module is None:
            continue
        found = module.definitions.get(name)
        if found:
            yield found
        used = set(_used_names(modules, module, found)) if found else set[tuple[str, str]]()
        waiting.extend(sorted(used - seen))
        seen |= used


def _used_names(
    modules: Mapping[str, Module], module: Module, found: Definition
) -> Iterator[tuple[str, str]]:
    """Yield what a definition names, by file and name, and what it imports."""
    mentions = (found.mentions | {"*"}) & module.definitions.keys()
    yield from ((module.path, name) for name in mentions)
    for file, taken in (*found.inner, *([found.origin] if found.origin else ())):
        names = [taken] if taken else modules[file].definitions if file in modules else ()
        yield from ((file, name) for name in names)
