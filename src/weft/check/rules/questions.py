"""Family UI, in code: what `use_ui_tool` shows is declared."""

import ast
import warnings
from collections.abc import Iterator

from weft.check.code.facts import code_of, reached
from weft.check.code.modules import UI_CALL, Module
from weft.check.code.signatures import Spot
from weft.check.rule import rule
from weft.check.rules.declared import all_entries
from weft.check.rules.tools import functions_meant
from weft.check.spelling import did_you_mean
from weft.check.subject import Hit, Subject
from weft.spec.tools import UiTool


@rule("UI007", "tools", "lifecycle_tools", "hooks", "code")
def question_has_tool(subject: Subject) -> Iterator[Hit]:
    """What code that is used shows to a person is a UI tool."""
    known = [tool.function for tool in subject.spec.tools if isinstance(tool, UiTool)]
    right = {*known, *subject.once(functions_meant)}
    for module in _asking(subject):
        for named in _named_tools(module, subject.code[module.path]):
            if named.value not in right:
                yield Hit(
                    (),
                    f'{UI_CALL} shows "{named.value}", which is no UI tool of the package',
                    hint=did_you_mean(str(named.value), known) or (_remedy(subject, named),),
                    place=module.place(Spot(named.lineno, named.col_offset)),
                )


def _remedy(subject: Subject, named: ast.Constant) -> str:
    if named.value in subject.tools:
        return f"declare {named.value} as UI_Tool, or name the one that is meant"
    return "declare it in tools.json as UI_Tool, or name one that is declared"


def _asking(subject: Subject) -> Iterator[Module]:
    """Yield the files that ask people something and that a tool or a hook uses."""
    modules = code_of(subject).modules
    asking = {
        path: module
        for path, module in modules.items()
        if any(UI_CALL in definition.mentions for definition in module.definitions.values())
    }
    if asking:
        used = {
            definition.file
            for entry in all_entries(subject)
            if entry.module
            for definition in reached(subject, entry.module.path, entry.declared.function)
        }
        yield from (module for path, module in asking.items() if path in used)


def _named_tools(module: Module, text: str) -> Iterator[ast.Constant]:
    """Yield the names that calls of use_ui_tool write down."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = list(ast.walk(ast.parse(text)))
    own = {
        alias.asname or UI_CALL
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == UI_CALL
    }
    for node in nodes:
        if isinstance(node, ast.Call) and _is_asking(module, node.func, own):
            named = node.args[0] if node.args else _by_keyword(node)
            if isinstance(named, ast.Constant) and isinstance(named.value, str):
                yield named


def _is_asking(module: Module, function: ast.expr, own: set[str]) -> bool:
    """Tell whether a call is of Weft's function: a package may have one of the same name."""
    match function:
        case ast.Name(id=name):
            fits = name in own
        case ast.Attribute(attr=attribute):
            name, fits = _root(function), attribute == UI_CALL
        case _:
            return False
    outside = name in module.origins and module.origins[name] is None
    return fits and outside and name not in module.functions


def _root(expression: ast.expr) -> str:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else ""


def _by_keyword(call: ast.Call) -> ast.expr | None:
    return next((it.value for it in call.keywords if it.arg == "tool_id"), None)
