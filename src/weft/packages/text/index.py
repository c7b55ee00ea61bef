"""The result of reading a text in any format: data, errors, and the place of each value.

The readers of JSON and YAML share these shapes, the limits, and the words for what both refuse.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_DEPTH: Final = 100
MAX_NODES: Final = 100_000
MAX_ERRORS: Final = 20
INTEGERS: Final = range(-(2**63), 2**63)

#: What to do about a file with nothing in it.
EMPTY_REMEDY: Final = "write what belongs in it, or remove the file"

Data: TypeAlias = "bool | int | float | str | Container | None"
Container: TypeAlias = "dict[str, Data] | list[Data]"


@dataclass(slots=True, eq=False)
class Node:
    """The offsets of a value and its key in a text; children by key or index."""

    start: int
    end: int
    key_start: int = -1
    key_end: int = -1
    children: "dict[str | int, Node] | None" = None


@dataclass(frozen=True, slots=True)
class TextError:
    """An error in a text, at an offset."""

    code: str
    message: str
    start: int
    cause: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    length: int = 1


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text holds; `root` is None where no index was made, `data` where an error forbids."""

    data: Data
    root: Node | None
    errors: tuple[TextError, ...] = ()


class UnreadableError(Exception):
    """An error after which nothing more can be read; never leaves the readers."""

    def __init__(self, error: TextError) -> None:
        super().__init__(error.message)
        self.error = error


def line_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def spot(text: str, offset: int) -> str:
    line, column = line_column(text, offset)
    return f"line {line}, column {column}"


def show(text: str, quote: str = "'") -> str:
    """Quote a piece of text for a message, shortened and with invisible characters named."""
    short = text if len(text) <= 40 else text[:37] + "..."
    return f"{quote}{short}{quote}" if short.isprintable() else ascii(short)


def children_of(value: Data) -> Iterable[Data]:
    """Return the values directly inside a value: none unless it is an object or a list."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def duplicate(text: str, key: str, first: Node, start: int, end: int) -> TextError:
    return TextError(
        "SCHEMA003",
        f"duplicate key {show(key)}",
        start,
        (f"the first one is on {spot(text, first.key_start)}",),
        ("keep one of the two, or give one of them another key",),
        end - start,
    )


def too_deep(start: int) -> TextError:
    message = f"the file nests more than {MAX_DEPTH} levels deep"
    return TextError("SCHEMA004", message, start, hint=("flatten the structure",))


def too_many(start: int) -> TextError:
    message = f"the file holds more than {MAX_NODES:,} values"
    return TextError("SCHEMA004", message, start, hint=("split it, or use fewer aliases",))


def out_of_range(digits: str, start: int) -> TextError:
    """Describe a number that other programs would not read back as the same value."""
    message = f"the number {show(digits)} is out of range"
    hint = ("whole numbers must fit in 64 bits, others must be finite; put names in quotes",)
    return TextError("SCHEMA004", message, start, hint=hint, length=len(digits))
