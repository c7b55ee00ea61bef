"""Objects in code that a spec refers to by name: found, and created once per declaration."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.check.code.references import object_names
from weft.dsl.objects import given_key
from weft.errors import LinkError
from weft.findings import Finding, Place
from weft.ids import join_names
from weft.ports.tools import ToolLoader
from weft.spec.part import JsonMap
from weft.spec.tools import LOCAL
from weft.spec.workflow import WorkflowSpec

#: The hint for code that only another program has.
PROGRAM: Final = (
    "continue in the program that defines it, on the same journal; a flow: async with "
    "open_flow(flow, journal=FILE) as host, then await host.recover() or await host.deliver(...)"
)
_OR_MOVE: Final = "or move the code into a module that can be imported"


def find_objects(
    spec: WorkflowSpec, digest: str, loader: ToolLoader, local: Mapping[str, object]
) -> dict[str, Any]:
    """Return the objects of a board or flow by name; raises LinkError that names missing ones."""
    names = sorted(object_names(spec))
    objects: dict[str, Any] = {name: local[name] for name in names if name in local}
    missing = [name for name in names if name.startswith(LOCAL) and name not in local]
    if missing:
        raise _not_here(missing)
    return objects | loader.objects(digest, (name for name in names if name not in objects))


def _not_here(missing: Sequence[str]) -> LinkError:
    """Return one error for all objects that only another program has."""
    names = join_names(missing)
    verb = "is" if len(missing) == 1 else "are"
    message = (
        f"{names} {verb} defined in code that is not loaded here: the workflow runs only there"
    )
    finding = Finding("LINK004", "error", message, Place(missing[0]), hint=(PROGRAM, _OR_MOVE))
    return LinkError(message, (finding,))


def unusable(name: str, fact: str, hint: str) -> LinkError:
    """Return the error for an object of the wrong kind."""
    message = f"{name} {fact}"
    return LinkError(message, (Finding("LINK004", "error", message, Place(name), hint=(hint,)),))


def display_name(reference: str, found: object) -> str:
    """Return the author's name for a function or an object, for messages."""
    own = getattr(found, "__name__", None) or type(found).__name__
    return own if own.isidentifier() else reference.rpartition(":")[2]


class ObjectMaker:
    """Creates declared objects; equal declarations share one object."""

    def __init__(self, objects: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        self.objects = objects
        #: Objects given in code or created before, by name and options.
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
                # Names only: the values of options may be private.
                given = ", ".join(options) or "nothing"
                raise LinkError(f"{name} cannot be created with {given}: {error}") from error
        return self._made[key]
