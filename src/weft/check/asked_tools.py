"""Which UI tools code shows to a person, as far as its text tells."""

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from weft.check.syntax_nodes import Nodes
from weft.check.variable_writes import called

#: The function by which code asks a person, and the signal that asks in a tool's own name.
UI_CALL: Final = "use_ui_tool"
OWN_SIGNAL: Final = "Ask"


def asked_in(nodes: Nodes) -> Iterator[str | None]:
    """Yield the tools that a piece of code names when it asks; None where that does not show."""
    calls = [node for node in nodes.of(ast.Call) if called(node.func) == UI_CALL]
    for call in calls:
        yield named_tool(call)
    heads = {call.func for call in calls}
    for node in (*nodes.of(ast.Name), *nodes.of(ast.Attribute)):
        # Under another name, or handed on, it can be called out of sight.
        if called(node) == UI_CALL and node not in heads:
            yield None
    yield from (None for node in nodes.of(ast.MatchClass) if UI_CALL in node.kwd_attrs)
    for node in (*nodes.of(ast.Import), *nodes.of(ast.ImportFrom)):
        if any(alias.name == UI_CALL and alias.asname for alias in node.names):
            yield None


def named_in(texts: Iterable[str]) -> Iterator[None]:
    """Yield that code may ask if it names the function in a text, as `getattr` takes it."""
    if any(UI_CALL in text and UI_CALL in text.split(".") for text in texts):
        yield None


def named_tool(call: ast.Call) -> str | None:
    """Return the tool that a call names; None where that does not show."""
    given = (it.value for it in call.keywords if it.arg == "tool_id")
    match call.args[0] if call.args else next(given, None):
        case ast.Constant(value=str(name)):
            return name
        case _:
            return None
