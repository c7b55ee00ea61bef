"""Tools: the functions of a package, as the runtime calls them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from weft.errors import ToolError
from weft.findings import Json
from weft.ports.model import ToolSchema

#: Asks a person: which tool's component, what it shows, seconds to wait, what holds after them.
AskPerson = Callable[[str, Json, float | None, Json], Awaitable[Json]]

#: Shows a person something: which tool's component, and what it shows.
ShowPerson = Callable[[str, Json], Awaitable[None]]


NO_HOOKS: Final[Mapping[str, tuple[str, str]]] = {}
NOTHING_GIVEN: Final[Mapping[str, object]] = {}


class VariableAccess(Protocol):
    """The variables as a tool sees them: read what it may read, set what it may set."""

    def get(self, key: str, default: Json = None) -> Json:
        """Return a value, or the default."""
        ...

    def set(self, key: str, value: Json) -> None:
        """Set a value; raises ToolError if it may not be set so."""
        ...

    def remove(self, key: str) -> None:
        """Set a variable back to no value."""
        ...

    def restart(self) -> None:
        """Forget what was set: the call is made again."""
        ...

    def to_dict(self) -> dict[str, Json]:
        """Return all values the tool may read."""
        ...


class _NoVariables:
    """The variables of code that is called outside of an activation."""

    def get(self, key: str, default: Json = None) -> Json:  # noqa: ARG002 - as the protocol
        return default

    def set(self, key: str, value: Json) -> None:  # noqa: ARG002
        raise ToolError(f"{key} cannot be set here")

    def remove(self, key: str) -> None:
        raise ToolError(f"{key} cannot be set here")

    def restart(self) -> None: ...

    def to_dict(self) -> dict[str, Json]:
        return {}


async def _no_answer(tool: str, payload: Json, seconds: float | None, otherwise: Json) -> Json:  # noqa: ARG001
    raise ToolError(f"{tool} cannot be asked: this code is not called as a tool")


async def _no_surface(tool: str, payload: Json) -> None:  # noqa: ARG001
    raise ToolError(f"{tool} cannot be shown: this code is not called as a tool")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of user code: a tool, a hook, an engine, a step, or a function of a board."""

    #: The tool; with a `function`, the name of the code in messages.
    name: str
    #: Identifies the call; the same when it is repeated after a crash.
    key: str = ""
    #: By parameter for a tool; in order for a `function`.
    arguments: Mapping[str, Json] | Sequence[object] = ()
    #: Code that is not a tool of the package; its result is returned unchanged.
    function: Callable[..., object] | None = None
    #: Set for hooks: the function takes from these the parameters it names.
    offered: Mapping[str, object] | None = None
    #: Whether a structured reply makes the call: the tool gets the fields that it names.
    from_reply: bool = False
    variables: VariableAccess = field(default_factory=_NoVariables)
    ask: AskPerson = _no_answer
    show: ShowPerson = _no_surface
    #: Lets the next attempt have the answers that people gave to the one that failed.
    restart_questions: Callable[[], None] = _NoVariables().restart
    #: Replaces secrets in what the code prints.
    mask: Callable[[str], str] = str
    #: Seconds, unless the function's own options say otherwise.
    timeout: float | None = None
    #: The name in the log of code that is not a tool, and which attempt of its step it is.
    log_name: str = ""
    attempt: int = 0
    #: The tenant of the run: tenants share the threads of blocking functions fairly.
    app: str = ""


class Tools(Protocol):
    """The linked code of one package."""

    def schema(self, tool: str) -> ToolSchema:
        """Return how a model sees a tool."""
        ...

    def validation_error(self, tool: str, arguments: Mapping[str, Json]) -> str | None:
        """Say why a tool cannot be called with arguments, or None if it can; nothing is called."""
        ...

    async def call(self, call: Call) -> object:
        """Perform a call; the result of a tool or a hook is JSON.

        Raises ToolError for a failure, and the signals RetryModel and Refuse as they are.
        """
        ...


class ToolLoader(Protocol):
    """Makes the code of a package callable."""

    def load(
        self,
        digest: str,
        code: Mapping[str, bytes],
        functions: Mapping[str, tuple[str, str]],
        hooks: Mapping[str, tuple[str, str]] = NO_HOOKS,
        given: Mapping[str, object] = NOTHING_GIVEN,
        workflow: str = "",
    ) -> Tools:
        """Import files and find functions; `functions` gives file and function by tool name.

        `hooks` are called by the engine and hidden from models. `given` are tools that exist
        already. Tracebacks name the files by the `workflow`. Raises LinkError naming
        everything that is missing.
        """
        ...

    def objects(self, digest: str, names: Iterable[str]) -> dict[str, object]:
        """Return objects, `module:name`, of a package that is loaded or of what is installed.

        Raises LinkError naming everything that is missing.
        """
        ...

    def unload(self, digest: str) -> None:
        """Release the code of a package, if it is loaded."""
        ...

    def close(self) -> None:
        """Release everything that was loaded."""
        ...
