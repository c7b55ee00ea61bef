"""Python as text: strings, type hints, and the frame of a file with one function.

Free text is never code: in strings it is escaped, in docstrings it is escaped and on one line.
"""

import json
import re
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Final

from weft.generator.compile.texts import line
from weft.spec.plan import PlannedField
from weft.spec.types import (
    ANY,
    DictOf,
    ListOf,
    LiteralOf,
    OptionalOf,
    Scalar,
    TypeExpr,
    UnionOf,
)

_LONGEST: Final = 400
_WIDTH: Final = 100
_SHORT: Final = 60
#: What the code of a tool may import.
_NAMES: Final = {
    "typing": ("Any", "Literal"),
    "weft": ("Context", "Refuse", "RetryModel", "use_ui_tool"),
}
CONTEXT: Final = "context_variables"


def string(text: str) -> str:
    """Return a text as a Python string on one line."""
    return json.dumps("".join(char for char in text if char.isprintable()), ensure_ascii=False)


def hint(type_: TypeExpr) -> str:
    """Return a type as a type hint."""
    match type_:
        case Scalar(name):
            return "Any" if name == "any" else name
        case ListOf(of):
            return f"list[{hint(of)}]"
        case DictOf(of):
            return f"dict[str, {hint(of)}]"
        case OptionalOf(of):
            return "Any" if of == ANY else f"{hint(of)} | None"
        case LiteralOf(values):
            listed = (string(each) if isinstance(each, str) else repr(each) for each in values)
            return f"Literal[{', '.join(listed)}]"
        case UnionOf(members):
            return " | ".join(map(hint, members))
        case _:
            return "dict[str, Any]"


def function_file(
    name: str, purpose: str, fields: Sequence[PlannedField], body: Iterable[str], *, result: str
) -> str:
    """Return a file with one function; what it imports follows from its text.

    Fields that may be null come last, and are null if they are missing.
    """
    lines = list(body)
    optional = [each for each in fields if isinstance(each.value_type, OptionalOf)]
    parameters = [
        f"{each.name}: {hint(each.value_type)}" for each in fields if each not in optional
    ]
    if any(CONTEXT in each for each in lines):
        parameters.append(f"{CONTEXT}: Context")
    parameters += [f"{each.name}: {hint(each.value_type)} = None" for each in optional]
    start = "async def" if any("await " in each for each in lines) else "def"
    head = f"{start} {name}({', '.join(parameters)}) -> {result}:"
    if len(head) > _WIDTH:
        inside = "".join(f"    {each},\n" for each in parameters)
        head = f"{start} {name}(\n{inside}) -> {result}:"
    body = "\n".join(lines)
    text = "\n".join([head, f'    """{_doc(purpose)}"""', indent(body, "    ")])
    return f'"""{_doc(purpose)}"""\n\n{_imports(head + body)}\n\n{text}\n'


def _imports(code: str) -> str:
    words = set(re.findall(r"\w+", code))
    found = {module: [name for name in names if name in words] for module, names in _NAMES.items()}
    lines = (f"from {each} import {', '.join(names)}\n" for each, names in found.items() if names)
    return "\n".join(lines)


def _doc(text: str) -> str:
    seen = "".join(char for char in line(text, _LONGEST) if char.isprintable())
    return seen.replace("\\", "\\\\").replace('"', '\\"')


def mapping(pairs: Iterable[tuple[str, str]]) -> str:
    """Return an object of named expressions, on one line if it is short."""
    entries = [f"{string(name)}: {value}" for name, value in pairs]
    line = f"{{{', '.join(entries)}}}"
    if len(line) <= _SHORT:
        return line
    return "{\n" + "".join(f"    {each},\n" for each in entries) + "}"
