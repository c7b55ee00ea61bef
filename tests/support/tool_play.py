"""Playing with Python tools: real files in a folder, loaded and called without a run."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from support.engine_play import workflow
from weft.adapters.python_tools.calling import Limits, PythonTools
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.python_tools.threads import Threads
from weft.engine.compiled import CompiledWorkflow
from weft.engine.state import State
from weft.errors import LinkError
from weft.ports.tools import AskPerson, Call
from weft.runtime.tools.context_variables import Context

#: Short, so that a test of what hangs does not; and long, so that a busy machine is no failure.
QUICK = Limits(timeout=0.5, grace=0.1, pause=0.01)
PATIENT = Limits(timeout=30, grace=5, pause=0.01)

VARIABLES = {
    "topic": {"type": "str", "source": {"type": "derived", "default": "general"}},
    "count": {"type": "int", "source": {"type": "derived"}},
    "items": {"type": "list[str]", "source": {"type": "derived"}},
    "hidden": {"type": "str", "source": {"type": "derived"}, "readers": ["Other"]},
    "guarded": {"type": "str", "source": {"type": "derived"}, "writers": ["keeper", "Chief"]},
    "fixed": {"type": "str", "source": {"type": "static", "value": "stone"}},
    "phase": {
        "type": "str",
        "source": {
            "type": "derived",
            "default": "new",
            "transitions": [{"from": "new", "to": "open"}, {"from": "open", "to": "done"}],
        },
    },
}


def compiled() -> CompiledWorkflow:
    return workflow(variables=VARIABLES)


def state(**values: Any) -> State:
    rules = compiled()
    return State(
        "run-1",
        app="acme",
        user="ada",
        workflow="W",
        variables={**rules.start_values, **values},
    )


def context(agent: str = "A", tool: str = "t", **values: Any) -> Context:
    return Context(compiled(), state(**values), turn=1, agent=agent, tool=tool, key="run-1:7")


def write(folder: Path, files: Mapping[str, str]) -> dict[str, bytes]:
    """Write files below a folder and return all that stands there, as a package is read."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def until(holds: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for what another thread is about to do."""
    last = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last, "it did not come to pass"
        time.sleep(0.005)


def digest_of(code: Mapping[str, bytes]) -> str:
    return hashlib.sha256(repr(sorted(code.items())).encode()).hexdigest()


async def nobody(tool: str, payload: object, seconds: float | None, otherwise: object) -> object:
    raise AssertionError(f"{tool} asks a person")


async def to_nobody(tool: str, payload: object) -> None:
    raise AssertionError(f"{tool} shows something to a person")


class Bench:
    """A loader, the folder its packages stand in, and short ways to use both."""

    def __init__(self, folder: Path, limits: Limits = PATIENT, threads: Threads | None = None):
        self.folder = folder
        self.loader = PythonToolLoader(limits, threads)

    def load(self, text: str, *tools: str, files: Mapping[str, str] | None = None) -> PythonTools:
        """Load tools that stand in tools/main.py, among other files."""
        code = write(self.folder, {"tools/main.py": text, **(files or {})})
        functions = {tool: ("main.py", tool) for tool in tools}
        return self.loader.load(digest_of(code), code, functions)

    def refused(self, text: str, *tools: str) -> LinkError:
        try:
            self.load(text, *tools)
        except LinkError as error:
            return error
        raise AssertionError("the package was linked")

    def call(self, text: str, tool: str, **arguments: Any) -> Any:
        """Load one tool and call it."""
        return play(self.load(text, tool), tool, arguments)


def tool_call(
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    variables: Context | None = None,
    ask: AskPerson = nobody,
    auto: bool = False,
) -> Call:
    return Call(
        tool,
        key="run-1:7",
        arguments=arguments or {},
        variables=variables or context(tool=tool),
        ask=ask,
        show=to_nobody,
        from_reply=auto,
    )


def play(tools: PythonTools, tool: str, arguments: Mapping[str, Any] | None = None, **rest: Any):
    """Call a tool from a loop of its own."""
    return asyncio.run(tools.call(tool_call(tool, arguments, **rest)))
