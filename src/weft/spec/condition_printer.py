"""Conditions written as text, in one spelling for each tree.

`parse_condition(print_condition(c)) == c` holds for every tree within the reader's limits. A group
that the author wrote inside one of its own kind, such as `(a and b) and c`, keeps its parentheses.
"""

from weft.spec.condition_tokens import KEYWORDS
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or, Value


def print_condition(condition: Condition) -> str:
    """Write a condition as text with the fewest parentheses that keep its tree."""
    match condition:
        case Name():
            return _printed(condition)
        case Compare(op, left, right):
            return f"{_printed(left)} {op} {_printed(right)}"
        case Not(operand):
            return f"not {_grouped(operand, (And, Or))}"
        case And(operands):
            return " and ".join(_grouped(operand, (And, Or)) for operand in operands)
        case _:
            return " or ".join(_grouped(operand, (Or,)) for operand in condition.operands)


def _grouped(condition: Condition, looser: tuple[type, ...]) -> str:
    text = print_condition(condition)
    return f"({text})" if isinstance(condition, looser) else text


def _printed(operand: Name | Value | ListOf) -> str:
    match operand:
        case Name(name):
            return f"${{{name}}}" if name.lower() in KEYWORDS else name
        case ListOf(items):
            return f"[{', '.join(map(_printed, items))}]"
        case Value(None):
            return "null"
        case Value(bool() as value):
            return "true" if value else "false"
        case Value(str() as value):
            return _quoted(value)
        case _:
            return repr(operand.value)


def _quoted(text: str) -> str:
    quote = "'" if '"' in text and "'" not in text else '"'
    escapes = {"\\": "\\\\", quote: f"\\{quote}", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return quote + "".join(escapes.get(char) or _visible(char) for char in text) + quote


def _visible(char: str) -> str:
    # An escape has four hexadecimal digits; the rare invisible characters beyond stay as they are.
    return char if char.isprintable() or char > "\uffff" else f"\\u{ord(char):04x}"
