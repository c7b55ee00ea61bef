"""What the docstring of a function says about it and about its parameters."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

_SECTION: Final = re.compile(r"(?:Args|Arguments|Parameters):\s*\Z")
_ENTRY: Final = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?:\s*(?P<text>.*)\Z")


def summary(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0].strip()


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return what stands below "Args:" for each parameter, each as one line."""
    texts: dict[str, list[str]] = {}
    entry: list[str] = []
    margin = 0
    for indent, line in _section((inspect.getdoc(function) or "").splitlines()):
        margin = margin or indent
        found = _ENTRY.match(line) if indent <= margin else None
        if found is None:
            entry.append(line)
        else:
            entry = texts.setdefault(found["name"], [])
            entry.append(found["text"])
    return {name: " ".join(filter(None, lines)) for name, lines in texts.items()}


def _section(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of the section on arguments with their indent; it ends where that ends."""
    inside = False
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if inside and text and not indent:
            return
        if inside and text:
            yield indent, text
        inside = inside or _SECTION.match(line) is not None
