"""The code of packages as modules, each package in a namespace of its own.

Python imports them from bytes, through a finder that knows nothing else: no folder is searched, a
file that changes on disk changes nothing, and two versions of one package live side by side.
"""

import linecache
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from itertools import count
from threading import RLock
from types import ModuleType
from typing import Any, Final

from weft.adapters.python_tools.surroundings import package_builtins

ROOT: Final = "weft_packages"

#: Two loaders of one process must not take the same name for a package at the same time, nor
#: change the list of finders.
_NAMING: Final = RLock()

#: The folders of loaded packages in tracebacks: two versions of a package are kept apart.
_FOLDERS: Final[set[str]] = set()


@dataclass(frozen=True, slots=True)
class PackageCode:
    """The code of one package, and the name below which it is imported."""

    name: str
    files: Mapping[str, bytes]
    builtins: dict[str, Any]
    #: What tracebacks call its folder; no other package of the process has the same.
    folder: str

    def module(self, path: str) -> ModuleType:
        """Import a file, and what it imports in turn; raises whatever its code raises."""
        return import_module(f"{self.name}.{path.removesuffix('.py').replace('/', '.')}")

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
        """Forget a package and all its modules; calls under way keep what they hold."""
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
                # Not in place: another thread may be going through it, and would miss a finder.
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
        """Tell whether the file stands for its folder."""
        return self._path.endswith("/__init__.py")

    def exec_module(self, module: ModuleType) -> None:
        """Run the file, with what a package finds around it."""
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
    """Return a folder without code of its own. Its search path is empty: only we find in it."""
    return ModuleSpec(fullname, None, is_package=True)


def _free_name(wanted: str) -> str:
    """Return a name no module has: two hosts in one process may hold the same package."""
    return _free(wanted, "_", sys.modules)


def _free(wanted: str, mark: str, taken: Container[str]) -> str:
    numbered = (wanted if number == 1 else f"{wanted}{mark}{number}" for number in count(1))
    return next(name for name in numbered if name not in taken)
