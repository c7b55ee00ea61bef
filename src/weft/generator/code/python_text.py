"""Python as text: what every generated file is put together from.

Free text never gets into code as it is: in strings it is escaped, in docstrings it is escaped and
on one line. What cannot be seen is left out of it.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.generator.shapes import FieldShape
from weft.spec.type_parser import parse_type
from weft.spec.types import (
    ANY,
    DictOf,
    ListOf,
    LiteralOf,
    OptionalOf,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
)

#: The longest sentence in code: whoever wants to say more says it in a prompt.
_LONGEST: Final = 400
_WIDTH: Final = 100
#: Modules in the order of their imports; each group of them stands for itself.
_GROUPS: Final = (("json", "re", "typing"), ("pydantic",), ("weft",))

CONTEXT: Final = "context_variables"


@dataclass(frozen=True, slots=True)
class Piece:
    """A function, and what must stand above it: imports as module and name, helpers by name."""

    text: str
    imports: frozenset[tuple[str, str]] = frozenset()
    helpers: Mapping[str, str] = field(default_factory=dict[str, str])


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line, without signs that cannot be seen, cut where it is too long.

    >>> one_line("Sorts  the\\nmail\\u202e.")
    'Sorts the mail.'
    """
    seen = "".join(it for it in " ".join(text.split()) if it.isprintable())
    return seen if len(seen) <= longest else f"{seen[: longest - 3].rstrip()}..."


def string(text: str) -> str:
    """Return a text as a Python string on one line."""
    return json.dumps("".join(it for it in text if it.isprintable()), ensure_ascii=False)


def doc_text(text: str, otherwise: str) -> str:
    """Return a text as it stands inside of a docstring; `otherwise` where nothing is said."""
    plain = one_line(text) or otherwise
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def docstring(purpose: str, otherwise: str, fields: Sequence[FieldShape] = ()) -> str:
    """Return the docstring of a function, which tells a model about its parameters as well."""
    head = doc_text(purpose, otherwise)
    told = [it for it in fields if it.description.strip()]
    if not told:
        return f'    """{head}"""\n'
    lines = [f"        {it.name}: {doc_text(it.description, it.name)}" for it in told]
    return "\n".join([f'    """{head}', "", "    Args:", *lines, '    """', ""])


def hint(type_: TypeExpr, classes: Collection[str] = ()) -> str:
    """Return a type as a type hint; a model is an object, unless it has a class in the file."""
    match type_:
        case Scalar("any"):
            return "Any"
        case Scalar(name):
            return name
        case ListOf(of):
            return f"list[{hint(of, classes)}]"
        case DictOf(of):
            return f"dict[str, {hint(of, classes)}]"
        case OptionalOf(of):
            return "Any" if of == ANY else f"{hint(of, classes)} | None"
        case LiteralOf(values):
            listed = (string(it) if isinstance(it, str) else repr(it) for it in values)
            return f"Literal[{', '.join(listed)}]"
        case UnionOf(members):
            return " | ".join(hint(it, classes) for it in members)
        case Ref(name):
            return name if name in classes else "dict[str, Any]"


def typing_imports(
    fields: Iterable[FieldShape], classes: Collection[str] = ()
) -> frozenset[tuple[str, str]]:
    """Return what the type hints of fields need of `typing`."""
    found: set[str] = set()
    waiting = [type_of(it) for it in fields]
    while waiting:
        type_ = waiting.pop()
        match type_:
            case ListOf(of) | DictOf(of) | OptionalOf(of):
                waiting.append(of)
            case UnionOf(members):
                waiting.extend(members)
            case LiteralOf():
                found.add("Literal")
            case Ref(name):
                found.update(() if name in classes else ("Any",))
            case Scalar(name):
                found.update(("Any",) if name == "any" else ())
    return frozenset(("typing", name) for name in found)


def type_of(shape: FieldShape) -> TypeExpr:
    """Return the type of a field; shapes hold it as text."""
    return parse_type(shape.type)


def signature(
    name: str, fields: Sequence[FieldShape], *, context: bool, awaits: bool, returns: str
) -> str:
    """Return the head of a function. What may be left out comes last, and is None then."""
    needed, optional = _by_need(fields)
    parts = [
        *(f"{it.name}: {hint(type_of(it))}" for it in needed),
        *([f"{CONTEXT}: Context"] if context else ()),
        *(f"{it.name}: {hint(type_of(it))} = None" for it in optional),
    ]
    start = f"{'async ' if awaits else ''}def {name}("
    line = f"{start}{', '.join(parts)}) -> {returns}:\n"
    if len(line) <= _WIDTH:
        return line
    inside = "".join(f"    {it},\n" for it in parts)
    return f"{start}\n{inside}) -> {returns}:\n"


def _by_need(fields: Sequence[FieldShape]) -> tuple[list[FieldShape], list[FieldShape]]:
    optional = [it for it in fields if isinstance(type_of(it), OptionalOf)]
    return [it for it in fields if it not in optional], optional


def module(doc: str, pieces: Sequence[Piece]) -> str:
    """Return a whole file: what it is for, its imports, helpers and functions."""
    wanted = {pair for piece in pieces for pair in piece.imports}
    helpers = {name: text for piece in pieces for name, text in piece.helpers.items()}
    groups = ("".join(_import(it, wanted) for it in group) for group in _GROUPS)
    head = [f'"""{doc_text(doc, "A part of this workflow.")}"""\n', *filter(None, groups)]
    bodies = [*helpers.values(), *(it.text for it in pieces)]
    return "\n\n\n".join(["\n".join(head).rstrip("\n"), *(it.rstrip("\n") for it in bodies)]) + "\n"


def _import(module: str, wanted: Collection[tuple[str, str]]) -> str:
    names = sorted(name for it, name in wanted if it == module)
    if not names:
        return ""
    return f"from {module} import {', '.join(names)}\n" if all(names) else f"import {module}\n"


def mapping(pairs: Iterable[tuple[str, str]], indent: str = "    ") -> str:
    """Return an object of named expressions: on one line, or one to a line where it is long."""
    entries = [f"{string(name)}: {value}" for name, value in pairs]
    line = f"{{{', '.join(entries)}}}"
    if len(indent) + len(line) <= _WIDTH - len("return "):
        return line
    return "{\n" + "".join(f"{indent}    {it},\n" for it in entries) + f"{indent}}}"
