"""The options of a command, described in its docstring."""

from collections.abc import Callable
from inspect import Parameter as Signature
from inspect import signature
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import Parameter

from weft.cli.commands.table import read_docstring
from weft.cli.failure import usage
from weft.cli.streams import Streams

F = TypeVar("F", bound=Callable[..., Any])

#: The streams of a command, which are not an option.
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]


def command(function: F) -> F:
    """Give the parameters of a command the names, values and help in its docstring.

    A line `-o, --output FILE  Help.` describes the parameter `output`; lines without a dash
    describe the arguments in order. Parameters of a type that has help are not described.
    """
    labels = read_docstring(function.__doc__ or "").options
    arguments = iter([label for label in labels if not label.startswith("-")])
    options = {
        name: label
        for label in labels
        for name in label.replace(",", "").split()
        if name.startswith("--")
    }
    for name, parameter in signature(function).parameters.items():
        known: list[Any] = [
            data
            for data in getattr(parameter.annotation, "__metadata__", ())
            if isinstance(data, Parameter)
        ]
        if any(data.help or False in (data.parse, data.show) for data in known):
            continue
        if parameter.kind is Signature.KEYWORD_ONLY:
            label = options[f"--{name.strip('_').replace('_', '-')}"]
            words = label.replace(",", "").split()
            names = sorted((word for word in words if word.startswith("-")), key=len, reverse=True)
            value = None if words[-1].startswith("-") else words[-1]
            described = Parameter(name=names, metavar=value, help=labels[label])
        else:
            label = next(arguments)
            described = Parameter(name=label, help=labels[label])
        function.__annotations__[name] = Annotated[parameter.annotation, described]
    return function


def require_positive(limit: int) -> None:
    """Refuse a --limit below 1."""
    if limit < 1:
        raise usage(f'invalid value "{limit}" for --limit', "use a number above 0")
