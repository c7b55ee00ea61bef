"""Objects in code that a spec refers to by name: found, and made once with what is declared."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from weft.dsl.objects import given_key
from weft.errors import LinkError
from weft.findings import Finding, Place
from weft.ids import join_names
from weft.ports.tools import ToolLoader
from weft.spec.part import JsonMap
from weft.spec.tools import LOCAL

#: What to do where code is that of a program.
PROGRAM: Final = (
    "go on in the program that defines it, on the same journal; a flow: async with "
    "open_flow(flow, journal=FILE) as host, then await host.recover() or await host.deliver(...)"
)
_OR_MOVE: Final = "or move the code into a module that can be imported"


def find_objects(
    references: Iterable[str], digest: str, loader: ToolLoader, local: Mapping[str, object]
) -> dict[str, Any]:
    """Return everything that is referred to. Raises LinkError naming what is missing."""
    names = sorted(set(references))
    objects: dict[str, Any] = {name: local[name] for name in names if name in local}
    missing = [name for name in names if name.startswith(LOCAL) and name not in local]
    if missing:
        raise _not_here(missing)
    return objects | loader.objects(digest, (name for name in names if name not in objects))


def _not_here(missing: Sequence[str]) -> LinkError:
    """Return one error for everything that only the program itself has."""
    told = join_names(missing)
    verb = "is" if len(missing) == 1 else "are"
    message = f"{told} {verb} defined in code that is not loaded here: the workflow runs only there"
    finding = Finding("LINK004", "error", message, Place(missing[0]), hint=(PROGRAM, _OR_MOVE))
    return LinkError(message, (finding,))


def unusable(name: str, told: str, hint: str) -> LinkError:
    """Return the error for an object that is there and is not what it should be."""
    message = f"{name} {told}"
    return LinkError(message, (Finding("LINK004", "error", message, Place(name), hint=(hint,)),))


def display_name(reference: str, found: object) -> str:
    """Return the author's name for a function or an object, for messages."""
    own = getattr(found, "__name__", None) or type(found).__name__
    return own if own.isidentifier() else reference.rpartition(":")[2]


class ObjectMaker:
    """Makes objects from what is declared; one that is declared twice is made once."""

    def __init__(self, objects: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self.objects = objects
        #: What was given in code, or made already, by its name and its options.
        self._made: dict[str, Any] = dict(given)

    def instance(self, name: str, options: JsonMap) -> Any:  # noqa: ANN401 - an author's object
        found = self.objects[name]
        if not isinstance(found, type):
            return found
        key = given_key(name, options)
        if key not in self._made:
            try:
                self._made[key] = found(**options)
            except Exception as error:
                # The names alone: the values of options may be private.
                given = ", ".join(options) or "nothing"
                raise LinkError(f"{name} cannot be made with {given}: {error}") from error
        return self._made[key]
