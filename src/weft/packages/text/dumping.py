"""Writing data as text, always in the same way: whole files, and the pieces edits put into them.

YAML is written in block style and for every reader: what some of them would take for something
else than text stands in quotes.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, cast

from weft.findings import Json
from weft.packages.text.documents import Format
from weft.packages.text.index import Container, Data

#: Characters that YAML refuses, or reads as line breaks, unless they are written as escapes.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
#: Words that some YAML readers take for something else than text.
_TAKEN: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def dump(data: Json, form: Format) -> str:
    """Return data as the text of a whole file: JSON, or YAML in block style."""
    value = cast("Data", data)
    if form == "json":
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    lines = (
        block_lines(value, "")
        if value and isinstance(value, dict | list)
        else inline_lines("", value, "")
    )
    return "\n".join(lines).lstrip(" ") + "\n"


def block_lines(value: Container, pad: str) -> Iterator[str]:
    """Write an object or a list that is not empty, one line after the other."""
    if isinstance(value, dict):
        for key, item in value.items():
            text = scalar(key)
            # A key in front of its colon may have at most 1024 characters.
            head = f"{pad}{text}:" if len(text) < 1000 else f"{pad}? {text}\n{pad}:"
            if item and isinstance(item, dict | list):
                yield head
                yield from block_lines(item, pad + "  ")
            else:
                yield from inline_lines(head, item, pad)
    else:
        for item in value:
            if item and isinstance(item, dict | list):
                first, *others = block_lines(item, pad + "  ")
                yield f"{pad}- {first.lstrip(' ')}"
                yield from others
            else:
                yield from inline_lines(f"{pad}-", item, pad)


def inline_lines(head: str, value: Data, pad: str) -> Iterator[str]:
    """Write a value that follows its key or dash: in the same line, or as a literal block."""
    if not (isinstance(value, str) and _is_literal(value)):
        yield f"{head} {scalar(value)}"
        return
    yield f"{head} |" if value.endswith("\n") else f"{head} |-"
    for line in value.removesuffix("\n").split("\n"):
        yield f"{pad}  {line}" if line else ""


def scalar(value: Data) -> str:
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return value if _is_plain(value) else _UNSAFE.sub(_escape, quoted)
    text = json.dumps(value, allow_nan=False)
    # Some readers take a number for one with an exponent only if it has a point too.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def compact(value: Data, form: Format) -> str:
    """Write a value in one line as JSON does it, which YAML reads inside brackets too."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if form == "json" else _UNSAFE.sub(_escape, text)


def _is_plain(text: str) -> bool:
    """Tell whether text can stand in a YAML block without quotes, for every reader."""
    return (
        (text[:1].isalpha() or text.startswith("_"))
        and text.isprintable()
        and not text.endswith((" ", ":"))
        and ": " not in text
        and " #" not in text
        and text.lower() not in _TAKEN
    )


def _is_literal(text: str) -> bool:
    """Tell whether text of several lines can stand as a literal block."""
    return (
        "\n" in text
        and not text[0].isspace()
        and not text.endswith("\n\n")
        and not _UNSAFE.search(text)
    )


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
