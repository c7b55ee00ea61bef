"""Names that a plan may not use: generated code or settings of Weft need them, or they are keys."""

from collections.abc import Iterator
from typing import Final

from weft.check.secrets import names_a_key
from weft.generator.names import snake_case
from weft.generator.plans.faults import Fault, pascal, snake
from weft.ids import TERMINATE, USER
from weft.spec.plan import PlannedVariable

#: What the code of packages imports and calls: a function of that name would hide it.
_USED: Final = frozenset(
    {
        *("weft", "pydantic", "re", "json", "typing", "logging", "use_ui_tool"),
        *("bool", "dict", "float", "int", "isinstance", "len", "list", "object", "str"),
    }
)


def function(path: str, name: str) -> Iterator[Fault]:
    """Refuse a name for a function, or for the file it stands in, that generated code needs."""
    yield from snake(path, name)
    if name in _USED:
        message = f'"{name}" is what the code of packages imports or calls'
        yield Fault(path, message, "say what it does, such as look_up_order")


def service(path: str, name: str | None) -> Iterator[Fault]:
    """Refuse the name of a service that is not PascalCase, or whose settings are those of Weft."""
    if name is None:
        return
    yield from pascal(path, name)
    if snake_case(name, "").partition("_")[0] == "weft":
        message = f"the settings of {name} would be called like those of Weft"
        yield Fault(path, message, "name the service behind it")


def no_key(path: str, variable: PlannedVariable) -> Iterator[Fault]:
    """Refuse a secret among what a run sets: that is kept, and shown."""
    if variable.type in ("state", "derived") and names_a_key(variable.name):
        message = f"{variable.name} is named like a secret, and what a run sets is kept and shown"
        yield Fault(path, message, "write the type config, or another name")


def agent_name(path: str, name: str) -> Iterator[Fault]:
    """Refuse the name of an agent that is not PascalCase, or a target of handoffs."""
    yield from pascal(path, name)
    if name.lower() in (USER, TERMINATE):
        yield Fault(path, f'"{name}" is a target of handoffs itself', "choose another name")
