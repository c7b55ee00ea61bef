"""Templates: text into which the values of variables are put.

    {name}      the value of the variable `name`
    {{name}}    the literal text `{name}`

Every other brace is literal, so a template may contain JSON and code.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
_TOKEN: Final = re.compile(rf"\{{(\{{{_NAME}\}})\}}|\{{({_NAME})\}}")

_FOREIGN: Final = re.compile(rf"\{{\{{[ \t]*({_NAME})[ \t]*\}}\}}|\$\{{[ \t]*({_NAME})[ \t]*\}}")


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable whose value is put in; `offset` is the place of its name in the template."""

    name: str
    offset: int


@lru_cache(maxsize=512)
def parse_template(text: str) -> tuple[str | Reference, ...]:
    """Cut a template into literal texts and references, in order.

    >>> parse_template("Hello {user_name}: {{x}}")
    ('Hello ', Reference(name='user_name', offset=7), ': {x}')
    """
    parts: list[str | Reference] = []
    literal = ""
    end = 0
    for token in _TOKEN.finditer(text):
        escaped, name = token.groups()
        literal += text[end : token.start()]
        end = token.end()
        if escaped:
            literal += escaped
            continue
        if literal:
            parts.append(literal)
        parts.append(Reference(name, token.start(2)))
        literal = ""
    literal += text[end:]
    return (*parts, literal) if literal else tuple(parts)


def read_foreign_placeholders(text: str) -> str:
    """Write placeholders of other template languages, `{{name}}` and `${name}`, as `{name}`.

    >>> read_foreign_placeholders("{{user_id}}:${user_id}:{user_id}")
    '{user_id}:{user_id}:{user_id}'
    """
    return _FOREIGN.sub(r"{\1\2}", text)


def references(text: str) -> tuple[Reference, ...]:
    """Return the variables that a template inserts, in order."""
    return tuple(part for part in parse_template(text) if isinstance(part, Reference))
