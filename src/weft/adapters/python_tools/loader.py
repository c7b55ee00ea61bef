"""Loads the code of packages, finds functions and objects, and unloads unused code."""

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, Final, cast

from weft.adapters.python_tools import built_in
from weft.adapters.python_tools.calling import (
    Limits,
    LinkedTool,
    PythonTools,
    describe_error,
    linked_hook,
)
from weft.adapters.python_tools.modules import PackageCode, PackageFinder
from weft.adapters.python_tools.schemas import read_signature
from weft.adapters.python_tools.threads import Threads
from weft.errors import LinkError, UsageError
from weft.findings import Finding, Place
from weft.ids import join_names, nearest, suggestion
from weft.ports.tools import NO_HOOKS, NOTHING_GIVEN
from weft.runtime.linked_objects import PROGRAM
from weft.runtime.tools.tool_api import options_of
from weft.spec.tools import BUILT_IN_FILE, BUILT_IN_TOOLS, INSTALLED

#: The code of findings that are known only after running the code.
NO_IMPORT: Final = "LINK001"
NO_SCHEMA: Final = "LINK002"
NO_OBJECT: Final = "LINK004"
NO_FILE: Final = "CODE001"
NO_FUNCTION: Final = "CODE002"
NO_PYTHON: Final = "CODE003"

#: The folder of a declared file that is not relative to the package folder.
_TOOLS: Final = "tools/"


@dataclass
class _Linking:
    """A package while its tools are linked."""

    package: PackageCode
    tools: dict[str, LinkedTool] = field(default_factory=dict[str, LinkedTool])
    findings: list[Finding] = field(default_factory=list[Finding])

    def plain(self, text: str) -> str:
        """Return a text with the names that the author uses."""
        return text.replace(f"{self.package.name}.", "")

    def fault(self, code: str, message: str, place: Place, *hint: str) -> None:
        self.findings.append(Finding(code, "error", message, place, hint=hint))


def link(
    package: PackageCode,
    functions: Mapping[str, tuple[str, str]],
    hooks: Mapping[str, tuple[str, str]] = NO_HOOKS,
    given: Mapping[str, object] = NOTHING_GIVEN,
) -> tuple[dict[str, LinkedTool], tuple[Finding, ...]]:
    """Import the files of tools and find their functions; return them with all findings."""
    linking = _Linking(package)
    by_file: dict[str, dict[str, str]] = {}
    for tool, function in given.items():
        _link_tool(linking, tool, tool, cast("Callable[..., Any]", function))
    for tool, (file, function) in (*functions.items(), *hooks.items()):
        if tool in given:
            continue
        known = file in package.files or file == BUILT_IN_FILE or file.startswith(INSTALLED)
        path = file if known else _TOOLS + file.removeprefix(_TOOLS)
        by_file.setdefault(path, {})[tool] = function
    for path, wanted in by_file.items():
        module = _import(linking, path)
        if module is None:
            continue
        for tool, name in wanted.items():
            function = _function(linking, path, module, name)
            if function is not None and tool in hooks:
                linking.tools[tool] = linked_hook(tool, function)
            elif function is not None:
                _link_tool(linking, path, tool, function)
    return linking.tools, tuple(linking.findings)


def find_objects(
    package: PackageCode, names: Iterable[str]
) -> tuple[dict[str, object], tuple[Finding, ...]]:
    """Find objects, `module:name`, in the package or in installed modules."""
    linking = _Linking(package)
    found: dict[str, object] = {}
    modules: dict[str, list[str]] = {}
    for name in names:
        modules.setdefault(name.partition(":")[0], []).append(name)
    for module_name, wanted in modules.items():
        stem = module_name.replace(".", "/")
        path = next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if p in package.files), "")
        inside = bool(path)
        module = _import(linking, path) if inside else _installed(linking, module_name, *wanted)
        for name in wanted if module is not None else ():
            inner = name.partition(":")[2]
            value = _inside(module, inner)
            if value is not None:
                found[name] = value
                continue
            hint = suggestion(inner, vars(module), f"define {inner} there")
            place = Place(path or f"{stem}.py")
            linking.fault(NO_OBJECT, f"{module_name} does not define {inner}", place, hint)
    return found, tuple(linking.findings)


def _inside(module: object, inner: str) -> object:
    value = module
    for step in inner.split("."):
        value = getattr(value, step, None)
    return value


def _installed(linking: _Linking, module: str, *wanted: str) -> ModuleType | None:
    """Import a module that is not a file of the package."""
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the author's code
        linking.fault(
            NO_OBJECT,
            f"{join_names(wanted) or module} cannot be found: {describe_error(error)}",
            Place(wanted[0] if wanted else module),
            f"add {module.replace('.', '/')}.py to the package, or install {module} here",
            f"where it is a file next to a script: PYTHONPATH=FOLDER weft ..., or {PROGRAM}",
        )
        return None


def _import(linking: _Linking, path: str) -> ModuleType | None:
    """Run a file; the author's code may raise any exception."""
    package = linking.package
    if path == BUILT_IN_FILE:
        return built_in
    if path.startswith(INSTALLED):
        return _installed(linking, path.removeprefix(INSTALLED))
    if path not in package.files:
        # Without the folder, which all files share.
        folder, _, name = path.rpartition("/")
        known = [file.removeprefix(f"{folder}/") for file in package.files]
        near = nearest(name, known)
        hint = f"did you mean {folder}/{near}?" if near else f"write {path}, or correct the file"
        linking.fault(NO_FILE, f"there is no file {path}", Place(path), hint)
        return None
    try:
        return package.module(path)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        place = next(_places(package, error), Place(path))
        code = NO_PYTHON if isinstance(error, SyntaxError) else NO_IMPORT
        message = f"{path} cannot be imported: {linking.plain(describe_error(error))}"
        linking.fault(code, message, place, _remedy(package, error))
        return None


def _places(package: PackageCode, error: BaseException) -> Iterator[Place]:
    """Yield the places of an error in the files of the package, the innermost first."""
    known = {package.file_name(path): path for path in package.files}
    if isinstance(error, SyntaxError) and error.filename in known:
        yield Place(known[error.filename], error.lineno, error.offset)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in known:
            yield Place(known[frame.filename], frame.lineno)


def _remedy(package: PackageCode, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        if error.name.startswith(package.name):
            return "correct the name in the import, or add the file to the package"
        return f"install {error.name} where Weft runs, or do without it"
    if isinstance(error, UsageError) and error.hint:
        return error.hint
    return "correct the code; it runs when the package is loaded"


def _function(
    linking: _Linking, path: str, module: ModuleType, name: str
) -> Callable[..., Any] | None:
    found = getattr(module, name, None)
    if callable(found) and not isinstance(found, type):
        return found
    known = [name for name, value in vars(module).items() if callable(value)]
    if module is built_in:
        known = list(BUILT_IN_TOOLS)
    hint = suggestion(name, known, f"define {name} in {path}")
    fact = (
        f"does not define {name}" if found is None else f"defines {name}, which is not a function"
    )
    linking.fault(NO_FUNCTION, f"{path} {fact}", Place(path), hint)
    return None


def _link_tool(linking: _Linking, path: str, tool: str, function: Callable[..., Any]) -> None:
    signature = read_signature(tool, function)
    if isinstance(signature, list):
        for fault in signature:
            linking.fault(
                NO_SCHEMA,
                f"models cannot call {tool}: {linking.plain(fault)}",
                Place(path, _line(function)),
                "use str, int, float, bool, list, dict, Literal, Enum, TypedDict, dataclasses or "
                "pydantic models",
            )
    else:
        linking.tools[tool] = LinkedTool(
            tool, function, signature, options_of(function), inspect.iscoroutinefunction(function)
        )


def _line(function: Callable[..., Any]) -> int | None:
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if code else None


@dataclass(slots=True)
class _Loaded:
    package: PackageCode
    tools: PythonTools
    #: The number of users.
    uses: int = 0


class PythonToolLoader:
    """Loads the code of packages, each version in its own namespace.

    `load` runs the code of the package, which may be slow: call it in a thread.
    """

    def __init__(self, limits: Limits | None = None, threads: Threads | None = None) -> None:
        self._limits = limits or Limits()
        self._threads = threads or Threads()
        self._finder = PackageFinder()
        self._loaded: dict[str, _Loaded] = {}
        #: Reentrant: garbage collection may unload code at any time.
        self._lock = RLock()
        self._loading: dict[str, RLock] = {}

    @property
    def left_behind(self) -> int:
        """The number of threads that hang in abandoned calls."""
        return self._threads.left_behind

    def load(
        self,
        digest: str,
        code: Mapping[str, bytes],
        functions: Mapping[str, tuple[str, str]],
        hooks: Mapping[str, tuple[str, str]] = NO_HOOKS,
        given: Mapping[str, object] = NOTHING_GIVEN,
        workflow: str = "",
    ) -> PythonTools:
        """Import files and find functions; `functions` gives file and function by tool name.

        Paths of files are relative to the package folder or to `tools/`. A digest is loaded once,
        and unloaded when every `load` has its `unload`. Models cannot call `hooks`; `given` are
        tools that exist already. Tracebacks name files by the `workflow`. Raises LinkError that
        names everything that is missing.
        """
        with self._lock:
            loading = self._loading.setdefault(digest, RLock())
        with loading:  # Other packages do not wait while this one is imported.
            known = self._loaded.get(digest)
            if known is None:
                with self._lock:
                    package = self._finder.add(digest, code, workflow)
                known = self._loaded[digest] = self._link(package, functions, hooks, given)
            known.uses += 1
            return known.tools

    def objects(self, digest: str, names: Iterable[str]) -> dict[str, object]:
        """Return objects, `module:name`, of a loaded package or of installed modules.

        Raises LinkError naming everything that is missing.
        """
        found, faults = find_objects(self._loaded[digest].package, names)
        findings = tuple(dict.fromkeys(faults))  # A file that cannot be imported is reported once.
        if findings:
            messages = "; ".join(finding.message for finding in findings)
            raise LinkError(f"the code of the workflow is incomplete: {messages}", findings)
        return found

    def unload(self, digest: str) -> None:
        """Unload the code of a package; an unknown digest is ignored."""
        with self._lock:
            loaded = self._loaded.get(digest)
            if loaded is None:
                return
            loaded.uses -= 1
            if loaded.uses <= 0:
                self._remove(digest)

    def _remove(self, digest: str) -> None:
        self._finder.remove(self._loaded.pop(digest).package)
        self._loading.pop(digest, None)

    def close(self) -> None:
        """Unload everything. Threads that hang end with the process."""
        with self._lock:
            for digest in list(self._loaded):
                self._remove(digest)
        self._threads.close()

    def _link(
        self,
        package: PackageCode,
        functions: Mapping[str, tuple[str, str]],
        hooks: Mapping[str, tuple[str, str]],
        given: Mapping[str, object],
    ) -> _Loaded:
        linked, findings = link(package, functions, hooks, given)
        if findings:
            self._finder.remove(package)
            faults = f"{len(findings)} fault{'s' if len(findings) > 1 else ''}"
            messages = "; ".join(finding.message for finding in findings)
            raise LinkError(f"the code of the package has {faults}: {messages}", findings)
        return _Loaded(package, PythonTools(linked, self._threads, self._limits))
