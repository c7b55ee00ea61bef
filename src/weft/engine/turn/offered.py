"""Tools that servers offer: which of them an agent may use, as the run has recorded them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from weft.engine.state import State
from weft.findings import Json


class Offered(NamedTuple):
    """A tool of a server, as it was when the run began.

    `schema` has name, description and parameters as a model sees them, `tool` is what the server
    calls it, and `reads` says that it changes nothing.
    """

    server: str
    tool: str
    reads: bool
    schema: Mapping[str, Json]


def offered_tools(state: State, servers: Iterable[str]) -> dict[str, Offered]:
    """Return the tools of some servers, by the names models know them by."""
    return {
        str(it["name"]): Offered(server, str(it["tool"]), it["reads"] is True, it)
        for server in servers
        for it in state.offered.get(server, ())
    }
