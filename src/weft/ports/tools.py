"""Tools: the functions of a package, as the runtime calls them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
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


def _nothing() -> None:
    """Do what there is to do where nobody was asked."""


async def _no_surface(tool: str, payload: Json) -> None:  # noqa: ARG001 - the port's own names
    raise ToolError(f"{tool} cannot be shown: nobody is there to see it")


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


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. `key` is the same when the call is repeated after a crash."""

    id: str
    run: str
    agent: str
    tool: str
    key: str
    arguments: Mapping[str, Json]
    variables: VariableAccess
    ask: AskPerson
    show: ShowPerson = field(default=_no_surface)
    #: What the function may take by name, where it is called at a boundary and not by a model.
    given: Mapping[str, object] | None = None
    #: Lets the next attempt have the answers that people gave to the one that failed.
    answer_again: Callable[[], None] = _nothing
    #: Whether a structured reply makes the call: the tool gets the fields that it names.
    auto: bool = False
    #: What the log calls it where it is no tool, and which attempt it is.
    logged_as: str = ""
    attempt: int = 0


class Tools(Protocol):
    """The linked code of one package."""

    def schema(self, tool: str) -> ToolSchema:
        """Return how a model sees a tool."""
        ...

    def validation_error(self, tool: str, arguments: Mapping[str, Json]) -> str | None:
        """Say why a tool cannot be called with arguments, or None if it can; nothing is called."""
        ...

    async def call(self, call: ToolCall) -> Json:
        """Call a tool and return its result as JSON.

        Raises ToolError for a failure, and the signals RetryModel and Refuse as they are.
        """
        ...

    async def invoke(
        self, call: ToolCall, function: Callable[..., object], *arguments: object
    ) -> object:
        """Call other code of a workflow as a tool is called, and return its result as it is.

        Raises ToolError for a failure.
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
    ) -> Tools:
        """Import files and find functions; `functions` gives file and function by tool name.

        `hooks` are called at boundaries: no model is told of them. `given` are tools that are
        there already. Raises LinkError naming everything that is missing.
        """
        ...

    def objects(self, digest: str, names: Iterable[str]) -> dict[str, object]:
        """Return objects, `module:name`, of a package that is loaded or of what is installed.

        Raises LinkError naming everything that is missing.
        """
        ...

    def unload(self, digest: str) -> None:
        """Let go of the code of a package; one that is not loaded is no mistake."""
        ...

    def close(self) -> None:
        """Let go of everything that was loaded."""
        ...
