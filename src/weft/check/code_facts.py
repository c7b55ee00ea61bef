"""The code of a package as the rules see it: which functions there are and how they are called.

All of it is found in the text of the files. Nothing is imported, nothing runs.
"""

import re
from collections.abc import Container, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from weft.check.asked_tools import OWN_SIGNAL, UI_CALL
from weft.check.context_sight import ACCESS, TYPE_NAME, Handing, Taker
from weft.check.module_facts import Definition, Module
from weft.check.module_reader import read_module
from weft.check.package_files import file_of
from weft.check.signatures import Function
from weft.check.subject import Subject
from weft.check.variable_writes import Write
from weft.ids import nearest

#: What names are written with.
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Code:
    """The Python files of a package, and those that are no Python."""

    modules: dict[str, Module]
    faults: dict[str, SyntaxError]

    @cached_property
    def takers(self) -> dict[str, list[tuple[Taker, Definition]]]:
        """The functions of all files, at any depth, by their name."""
        found: dict[str, list[tuple[Taker, Definition]]] = {}
        for module in self.modules.values():
            for taker, within in module.takers:
                found.setdefault(taker.name, []).append((taker, within))
        return found

    @cached_property
    def roaming(self) -> frozenset[tuple[str, str]]:
        """The definitions, by file and name, that may be called by code that does not name them."""
        about = {name for module in self.modules.values() for name in module.about}
        return frozenset(
            (path, name)
            for path, module in self.modules.items()
            for name, found in module.definitions.items()
            if found.roams or name in about
        )

    @cached_property
    def patches(self) -> frozenset[str]:
        """The attributes that code sets: each may be a function of a file."""
        return frozenset(it for module in self.modules.values() for it in module.patches)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a function is not there, and the name that was likely meant."""

    fact: str
    hint: tuple[str, ...] = ()


def code_of(subject: Subject) -> Code:
    """Return what the code of a package says; read once, however many rules ask."""
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
    """Return where in the package a declared file stands, or None if it is no plain path there.

    `file` is relative to `folder`; that the folder is written before it does no harm.

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
    """Return a function declared by file and name; None if it is not there, or imported there."""
    module = code_of(subject).modules.get(path_in(folder, file, subject.code) or "")
    return module.functions.get(name) if module else None


def module_file(subject: Subject, module: str) -> str | None:
    """Return the file of a module named from the package folder or from the workspace."""
    parts = module.split(".")
    own = {subject.folder, subject.spec.orchestrator.workflow_name}
    if parts[0] == "workflows" and len(parts) > 2 and parts[1] in own:
        parts = parts[2:]
    return file_of(parts, subject.code)


def missing_function(subject: Subject, reference: str) -> Missing | None:
    """Say why a `module:function` cannot be found in the code; None if it can.

    A file that is no Python is reported by itself, so its functions do not count as missing.
    """
    module, _, name = reference.partition(":")
    path = module_file(subject, module)
    if path is None:
        near = nearest(module, module_names(subject))
        hint = f"did you mean {near}:{name}?" if near else f"add the file {_wanted(module)}"
        return Missing(f"no file of the package is the module {module}", (hint,))
    found = code_of(subject).modules.get(path)
    if found is None or found.defines(name):
        return None
    near = nearest(name, found.definitions)
    hint = f"did you mean {module}:{near}?" if near else f"define {name} in {path}"
    return Missing(f"{path} does not define {name}", (hint,))


def module_names(subject: Subject) -> Iterator[str]:
    """Yield the dotted name of every Python file, from the package folder on."""
    for path in subject.code:
        if path.endswith(".py"):
            yield path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _wanted(module: str) -> str:
    parts = module.split(".")
    return "/".join(parts[2:] if parts[0] == "workflows" and len(parts) > 2 else parts) + ".py"


def writes_of(subject: Subject, path: str, name: str) -> tuple[Write, ...]:
    """Return the variables that a function sets, itself or through the package code it uses."""
    return tuple(write for found in reached(subject, path, name) for write in found.writes)


def asked_of(subject: Subject, path: str, name: str) -> frozenset[str | None]:
    """Return the tools that a function shows to a person, itself or through what it uses.

    None is among them where it does not show which.
    """
    if place_of(subject, path, name) is None:
        return frozenset({None})
    used = [*reached(subject, path, name)]
    found = frozenset(tool for definition in used for tool in definition.asked)
    perhaps = perhaps_reached(subject, path, name)
    if is_veiled(subject, path, name) or not all(found >= it.asked for it in perhaps):
        found |= {None}
    # What a function of the package by that name does, it alone knows.
    found = frozenset({None}) if found and UI_CALL in code_of(subject).takers else found
    by_signal = any(OWN_SIGNAL in definition.mentions for definition in used)
    return found | {name} if by_signal else found


def place_of(subject: Subject, path: str, name: str) -> tuple[str, str] | None:
    """Return the file in which a function's code stands, and its name there; None if none does."""
    modules = code_of(subject).modules
    met: set[tuple[str, str]] = set()
    while path in modules and (path, name) not in met:
        met.add((path, name))
        if name in modules[path].functions:
            return path, name
        definition = modules[path].definitions.get(name)
        if definition is None or definition.origin is None:
            return None
        path, name = definition.origin
    return None


def reached(subject: Subject, path: str, name: str) -> tuple[Definition, ...]:
    """Return a top-level definition and all those of the package that it uses, directly or not."""
    return _followed(subject, frozenset({(path, name)}))


def perhaps_reached(subject: Subject, path: str, name: str) -> tuple[Definition, ...]:
    """Return what `reached` does, and all that may be called without being named."""
    return _followed(subject, frozenset({(path, name), *code_of(subject).roaming}))


def _followed(subject: Subject, begin: frozenset[tuple[str, str]]) -> tuple[Definition, ...]:
    """Return all that is used from some places on; many rules ask for the same."""
    known = subject.once(_nothing_followed)
    if begin not in known:
        known[begin] = tuple(_reached(code_of(subject).modules, begin))
    return known[begin]


def _nothing_followed(
    _subject: Subject,
) -> dict[frozenset[tuple[str, str]], tuple[Definition, ...]]:
    return {}


def _reached(
    modules: Mapping[str, Module], begin: AbstractSet[tuple[str, str]]
) -> Iterator[Definition]:
    waiting, seen = sorted(begin), set(begin)
    while waiting:
        path, name = waiting.pop()
        module = modules.get(path)
        if module is None:
            continue
        found = module.definitions.get(name)
        if found:
            yield found
        used = set(_used(modules, module, found) if found else _among_all(module, {name}))
        waiting.extend(sorted(used - seen))
        seen |= used


def _used(
    modules: Mapping[str, Module], module: Module, found: Definition
) -> Iterator[tuple[str, str]]:
    """Yield what a definition names, by file and name, and what it imports."""
    yield from ((module.path, name) for name in found.mentions & module.definitions.keys())
    yield from _among_all(module, found.mentions - module.definitions.keys())
    for file, taken in (*found.inner, *([found.origin] if found.origin else ())):
        if taken:
            yield file, taken
            continue
        for path in _files_of(modules, file):
            yield from ((path, name) for name in modules[path].definitions)


def _files_of(modules: Mapping[str, Module], file: str) -> Iterator[str]:
    """Yield a file; of one that stands for its folder, all files in it, which others may load."""
    folder = file.removesuffix("__init__.py")
    inside = folder != file
    return (path for path in modules if path == file or (inside and path.startswith(folder)))


def _among_all(module: Module, names: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    """Yield where names may come from that a file imports along with all others."""
    return ((file, name) for file in module.stars for name in names)


def takes_unseen(subject: Subject, path: str, name: str) -> bool:
    """Tell whether a run may give a function the context as something that is hinted otherwise."""
    module = code_of(subject).modules[path]
    for parameter in module.functions[name].parameters:
        if parameter.hinted and not parameter.injected:
            for part in _WORDS.findall(parameter.hint):
                known = part in module.definitions or module.stars
                if known and any(TYPE_NAME in it.mentions for it in reached(subject, path, part)):
                    return True
    return False


def goes_out_of_sight(code: Code, function: str) -> bool:
    """Tell whether a function, or one that it names, gives the context to code not shown here."""
    waiting, met = [function], {function}
    while waiting:
        for _, within in code.takers.get(waiting.pop(), ()):
            if hands_out_of_sight(code, within):
                return True
            fresh = (within.mentions & code.takers.keys()) - met
            met |= fresh
            waiting.extend(fresh)
    return False


def is_veiled(subject: Subject, path: str, name: str) -> bool:
    """Tell whether a function uses code that does not show what it is."""
    code = code_of(subject)
    if any(module.by_name for module in code.modules.values()):
        return True
    module = code.modules.get(path)
    own = module.definitions.get(name) if module else None
    if module and own and (own.wrapped or name in code.patches or not module.is_plain(name)):
        return True
    return any(found.veiled or found.by_name for found in reached(subject, path, name))


def hands_out_of_sight(code: Code, definition: Definition) -> bool:
    """Tell whether code gives the context to a function that does not show that it takes it."""
    for handing in definition.handed:
        if handing.reads and _is_usual(code.modules[definition.file], handing):
            continue
        takers = _takers_of(code, definition.file, handing)
        if not takers:
            return True
        if not all(taker.takes(place) for taker in takers for place in handing.places):
            return True
    return False


def _is_usual(module: Module, handing: Handing) -> bool:
    """Tell whether a call means Python's own function, or one that comes from outside."""
    if handing.holder is None:
        return False
    name = handing.holder or handing.function
    if handing.function in ACCESS and module.is_plain(name):
        return name in module.origins and module.origins[name] is None
    return not module.bindings[name] and not module.anything


def _takers_of(code: Code, file: str, handing: Handing) -> list[Taker]:
    """Return the functions of the package that a call may mean; none if it may mean another."""
    name, module = handing.function, code.modules[file]
    if handing.holder is None or name in code.patches:
        return []
    if not module.is_plain(handing.holder or name):
        return []
    if handing.holder:
        file, taken = module.origins.get(handing.holder) or ("", "")
        if taken:
            return []
    elif name in module.origins:
        file, name = module.origins[name] or ("", "")
    found = code.modules.get(file)
    if found is None or not found.is_plain(name):
        return []
    return [taker for taker, _ in found.takers if taker.name == name]
