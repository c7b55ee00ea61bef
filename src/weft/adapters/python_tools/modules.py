"""The code of packages as modules, each package in a namespace of its own.

Python imports them from bytes, through a finder that knows nothing else: no folder is searched, a
file that changes on disk changes nothing, and two versions of one package coexist. The code sees
Python's built-in functions with three of them adapted: `import` looks into the package first, so
that its files find each other; `print` writes to stderr, because stdout belongs to the caller of
Weft; `input` is refused and names the way to ask a person.
"""

import builtins
import linecache
import sys
import typing
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from itertools import count
from threading import RLock
from types import ModuleType
from typing import Any, Final, TextIO, TypeAlias

import typing_extensions

from weft.errors import ToolError
from weft.runtime.tools.tool_api import masked_output

Import: TypeAlias = Callable[..., ModuleType]

#: Packages are imported as `workflows.<Name>` where a workspace is on the path.
_WORKSPACE: Final = "workflows"


def package_builtins(package: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the built-in names for the code of a package."""
    own = {
        "__import__": _importer(package, _module_names(files)),
        "print": _print,
        "input": _input,
    }
    return {**vars(builtins), **own}


def _module_names(files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the names of all modules and folders of a package."""
    stems = (path.removesuffix(".py").split("/") for path in files if path.endswith(".py"))
    return frozenset(".".join(stem[: end + 1]) for stem in stems for end in range(len(stem)))


def _importer(package: str, known: frozenset[str]) -> Import:
    def import_(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names Python gives them
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        names = tuple(fromlist or ())
        inner = None if level else _inside(name, _folder(package, globals or {}), names, known)
        if inner is not None and names:
            return builtins.__import__(_module_name(package, inner), globals, locals, names, 0)
        if inner is not None:
            import_module(_module_name(package, inner))
            return _first(package, name, inner)
        found = builtins.__import__(name, globals, locals, names, level)
        return _TYPING if found is typing else found

    return import_


def _inside(
    name: str, folder: list[str], names: tuple[str, ...], known: frozenset[str]
) -> str | None:
    """Return the module of the package that an absolute import means, or None."""
    first, *rest = name.split(".")
    if first == _WORKSPACE:
        inner = ".".join(rest[1:])
        return inner if inner in known or (not inner and known.intersection(names)) else None
    if name in known:
        return name
    # A file beside the importing one; a file named json.py does not hide Python's json.
    beside = ".".join([*folder, name])
    return beside if beside in known and first not in sys.stdlib_module_names else None


def _first(package: str, name: str, inner: str) -> ModuleType:
    """Return the module that `import a.b.c` binds: that of `a`."""
    first, *rest = name.split(".")
    if first == _WORKSPACE:
        holder = ModuleType(_WORKSPACE)
        setattr(holder, rest[0], sys.modules[package])
        return holder
    parts = inner.split(".")
    return sys.modules[_module_name(package, ".".join(parts[: len(parts) - len(rest)]))]


def _folder(package: str, importing: Mapping[str, Any]) -> list[str]:
    inner = str(importing.get("__package__")).removeprefix(package)
    return inner.strip(".").split(".")


def _module_name(package: str, inner: str) -> str:
    return f"{package}.{inner}" if inner else package


def _print(
    *values: object,
    sep: str | None = " ",
    end: str | None = "\n",
    file: TextIO | None = None,
    flush: bool = False,
) -> None:
    out = sys.stderr if file is None else file
    text = (" " if sep is None else sep).join(map(str, values))
    print(masked_output(text) if file is None else text, end=end, file=out, flush=flush)


def _input(prompt: object = "", /) -> str:  # noqa: ARG001 - the signature of Python's own
    raise ToolError("input() cannot be used in a tool; ask a person with use_ui_tool")


def _typing_twin() -> ModuleType:
    """Return `typing` with a TypedDict that pydantic can read."""
    twin = ModuleType("typing")
    vars(twin).update(vars(typing), TypedDict=typing_extensions.TypedDict)
    return twin


#: The result of `import typing`: from Python 3.12 on pydantic reads Python's own TypedDict.
_TYPING: Final = typing if sys.version_info >= (3, 12) else _typing_twin()


ROOT: Final = "weft_packages"

#: Held while a package is named and while the list of finders changes: two loaders of one
#: process must not choose the same name.
_NAMING: Final = RLock()

#: The folders of loaded packages in tracebacks, which differ between versions.
_FOLDERS: Final[set[str]] = set()


@dataclass(frozen=True, slots=True)
class PackageCode:
    """The code of one package, and the name of its namespace."""

    name: str
    files: Mapping[str, bytes]
    builtins: dict[str, Any]
    #: Its folder in tracebacks, unique in the process.
    folder: str

    def module(self, path: str) -> ModuleType:
        """Import a file and its imports; raises the exceptions of the code."""
        stem = path.removesuffix(".py").removesuffix("/__init__")
        return import_module(f"{self.name}.{stem.replace('/', '.')}")

    def file_name(self, path: str) -> str:
        """Return the name of a file in tracebacks."""
        return f"{self.folder}/{path}"


class PackageFinder(MetaPathFinder):
    """Finds the modules of the packages that were added."""

    def __init__(self) -> None:
        self._packages: dict[str, PackageCode] = {}

    def add(self, digest: str, files: Mapping[str, bytes], workflow: str = "") -> PackageCode:
        with _NAMING:
            name = _free_name(f"{ROOT}.d{digest[:16]}")
            folder = _free(workflow or name.rpartition(".")[2], "@", _FOLDERS)
            _FOLDERS.add(folder)
            package = PackageCode(name, dict(files), package_builtins(name, files), folder)
            self._packages[name] = package
            if self not in sys.meta_path:
                sys.meta_path.append(self)
            import_module(name)
        return package

    def remove(self, package: PackageCode) -> None:
        """Remove a package and its modules; current calls keep their references."""
        del self._packages[package.name]
        for name in list(sys.modules):
            if name == package.name or name.startswith(f"{package.name}."):
                del sys.modules[name]
        delattr(sys.modules[ROOT], package.name.rpartition(".")[2])
        for path in package.files:
            linecache.cache.pop(package.file_name(path), None)
        with _NAMING:
            _FOLDERS.discard(package.folder)
            if not self._packages:
                # A new list: another thread may be iterating over the old one.
                sys.meta_path = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the signature of every finder
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        root, *parts = fullname.split(".")
        if root != ROOT:
            return None
        if not parts:
            return _empty(fullname)
        package = self._packages.get(f"{ROOT}.{parts[0]}")
        return None if package is None else _spec(package, fullname, "/".join(parts[1:]))


class _CodeLoader(ExecutionLoader):
    """Runs one file of a package."""

    def __init__(self, package: PackageCode, path: str) -> None:
        self._package = package
        self._path = path

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 - one file for each loader
        return self._package.file_name(self._path)

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return decode_source(self._package.files[self._path])

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002
        """Return whether the file is the `__init__.py` of its folder."""
        return self._path.endswith("/__init__.py")

    def exec_module(self, module: ModuleType) -> None:
        """Run the file with the built-in names of packages."""
        vars(module)["__builtins__"] = self._package.builtins
        super().exec_module(module)


def _spec(package: PackageCode, fullname: str, stem: str) -> ModuleSpec | None:
    for path in (f"{stem}/__init__.py", f"{stem}.py"):
        if path in package.files:
            loader = _CodeLoader(package, path)
            spec = ModuleSpec(
                fullname,
                loader,
                origin=loader.get_filename(fullname),
                is_package=loader.is_package(fullname),
            )
            spec.has_location = True
            return spec
    inside = any(path.startswith(f"{stem}/") for path in package.files)
    return _empty(fullname) if inside or not stem else None


def _empty(fullname: str) -> ModuleSpec:
    """Return the module of a folder without code. Its search path is empty: only we search it."""
    return ModuleSpec(fullname, None, is_package=True)


def _free_name(wanted: str) -> str:
    """Return an unused module name: two hosts of one process may load the same package."""
    return _free(wanted, "_", sys.modules)


def _free(wanted: str, mark: str, taken: Container[str]) -> str:
    numbered = (wanted if number == 1 else f"{wanted}{mark}{number}" for number in count(1))
    return next(name for name in numbered if name not in taken)
