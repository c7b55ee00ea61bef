"""What any process can import by name, and what objects of it were made with."""

import inspect
import sys
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python

from weft.check.secrets import names_a_key, secret_in
from weft.findings import Json


def importable_name(it: Any) -> str | None:  # noqa: ANN401 - any object
    """Return `module:name` if any process can import an object by it."""
    module, name = getattr(it, "__module__", None), getattr(it, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    return f"{module}:{name}" if found is it else None


def options_of(it: Any) -> dict[str, Json] | None:  # noqa: ANN401 - any object
    """Return what an object was made with, as far as its attributes tell.

    None if they do not, or if it is a secret: specs are kept with every run, and shown.
    """
    options = _dumped(it) if isinstance(it, BaseModel) else _attributes(it)
    return None if options is None or holds_secret("", options) else options


def _dumped(it: BaseModel) -> dict[str, Json] | None:
    if any(isinstance(value, SecretStr | SecretBytes) for _, value in it):
        return None
    return it.model_dump(mode="json", exclude_defaults=True)


def _attributes(it: Any) -> dict[str, Json] | None:  # noqa: ANN401
    try:
        parameters = inspect.signature(it.__class__).parameters.values()
    except (TypeError, ValueError):
        return None
    options: dict[str, Json] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if not hasattr(it, parameter.name):
            return None
        value = getattr(it, parameter.name)
        if parameter.default is not parameter.empty and parameter.default == value:
            continue
        try:
            options[parameter.name] = to_jsonable_python(value)
        except ValueError:
            return None
        if options[parameter.name] != value:  # JSON would make something else of it.
            return None
    return options


def holds_secret(name: str, value: object) -> bool:
    """Tell whether a value seems to be a secret, or to hold one, given what it is called."""
    match value:
        case None | bool() | "":
            return False
        case str():
            return names_a_key(name) or secret_in(name, value) is not None
        case Mapping():
            inner = cast("Mapping[object, object]", value)
            return any(holds_secret(str(key), it) for key, it in inner.items())
        case list() | tuple():
            return any(holds_secret(name, it) for it in cast("list[object]", value))
        case _:
            return names_a_key(name)
