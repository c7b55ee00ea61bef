"""The packages whose code is loaded: each version once, for as long as somebody needs it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import RLock

from weft.adapters.python_tools.calling import Limits, PythonTools
from weft.adapters.python_tools.linking import find_objects, link
from weft.adapters.python_tools.modules import PackageCode, PackageFinder
from weft.adapters.python_tools.threads import Threads
from weft.errors import LinkError
from weft.ports.tools import NO_HOOKS, NOTHING_GIVEN


@dataclass(slots=True)
class _Loaded:
    package: PackageCode
    tools: PythonTools
    #: How often it was asked for.
    uses: int = 0


class PythonToolLoader:
    """Makes the code of packages callable, each version in a namespace of its own.

    `load` runs the code of the package: it may take a while and is meant to be called in a thread.
    """

    def __init__(self, limits: Limits | None = None, threads: Threads | None = None) -> None:
        self._limits = limits or Limits()
        self._threads = threads or Threads()
        self._finder = PackageFinder()
        self._loaded: dict[str, _Loaded] = {}
        #: Reentrant: what nothing needs any more may be unloaded in the middle of anything.
        self._lock = RLock()
        self._loading: dict[str, RLock] = {}

    @property
    def left_behind(self) -> int:
        """How many threads hang in calls that were given up."""
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

        A file may be named from the package folder on, or from `tools/` on. The same digest is
        loaded once, and let go when it was unloaded as often as it was asked for. No model is told
        of `hooks`; `given` are tools that are there already. Tracebacks name the files by the
        `workflow`. Raises LinkError naming everything that is missing.
        """
        with self._lock:
            loading = self._loading.setdefault(digest, RLock())
        with loading:  # Other packages need not wait while this one is imported.
            known = self._loaded.get(digest)
            if known is None:
                with self._lock:
                    package = self._finder.add(digest, code, workflow)
                known = self._loaded[digest] = self._link(package, functions, hooks, given)
            known.uses += 1
            return known.tools

    def objects(self, digest: str, names: Iterable[str]) -> dict[str, object]:
        """Return objects, `module:name`, of a package that is loaded or of what is installed.

        Raises LinkError naming everything that is missing.
        """
        found, faults = find_objects(self._loaded[digest].package, names)
        findings = tuple(dict.fromkeys(faults))  # A file that cannot be imported is one fault.
        if findings:
            told = "; ".join(finding.message for finding in findings)
            raise LinkError(f"the code of the workflow is not complete: {told}", findings)
        return found

    def unload(self, digest: str) -> None:
        """Let go of the code of a package; a digest that is not loaded is no mistake."""
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
        """Let go of everything. Threads that hang are left to end with the process."""
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
            told = "; ".join(finding.message for finding in findings)
            raise LinkError(f"the code of the package has {faults}: {told}", findings)
        return _Loaded(package, PythonTools(linked, self._threads, self._limits))
