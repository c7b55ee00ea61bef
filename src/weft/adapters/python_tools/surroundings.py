"""What the code of a package finds around it: Python's own functions, three of them adapted.

`import` looks into the package first, so that its files find each other by the names authors
write, and `print` goes to the error stream, since the output stream belongs to whoever runs Weft;
the secrets of the run are masked in it.
What is typed belongs to them as well: `input` refuses, and names the way to ask a person.
"""

import builtins
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TextIO, TypeAlias

import typing_extensions

from weft.errors import ToolError
from weft.runtime.tools.tool_api import masked_output

Import: TypeAlias = Callable[..., ModuleType]

#: Packages are imported as `workflows.<Name>` where a workspace is on the path.
_WORKSPACE: Final = "workflows"


def package_builtins(package: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the built-in names as code of a package sees them."""
    own = {
        "__import__": _importer(package, _module_names(files)),
        "print": _print,
        "input": _input,
    }
    return {**vars(builtins), **own}


def _module_names(files: Mapping[str, bytes]) -> frozenset[str]:
    """Name every module and folder of a package, from its own folder on."""
    stems = (path.removesuffix(".py").split("/") for path in files if path.endswith(".py"))
    return frozenset(".".join(stem[: end + 1]) for stem in stems for end in range(len(stem)))


def _importer(package: str, known: frozenset[str]) -> Import:
    def import_(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names Python gives them
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        names = tuple(fromlist or ())
        inner = None if level else _inside(name, _folder(package, globals or {}), names, known)
        if inner is not None and names:
            return builtins.__import__(_joined(package, inner), globals, locals, names, 0)
        if inner is not None:
            import_module(_joined(package, inner))
            return _first(package, name, inner)
        found = builtins.__import__(name, globals, locals, names, level)
        return _TYPING if found is typing else found

    return import_


def _inside(
    name: str, folder: list[str], names: tuple[str, ...], known: frozenset[str]
) -> str | None:
    """Return the module of the package that an absolute import means, or None if it means none."""
    first, *rest = name.split(".")
    if first == _WORKSPACE:
        inner = ".".join(rest[1:])
        return inner if inner in known or (not inner and known.intersection(names)) else None
    if name in known:
        return name
    # A file beside the importing one; but a file called json.py does not hide Python's own.
    beside = ".".join([*folder, name])
    return beside if beside in known and first not in sys.stdlib_module_names else None


def _first(package: str, name: str, inner: str) -> ModuleType:
    """Return what `import a.b.c` binds: the module that `a` stands for."""
    first, *rest = name.split(".")
    if first == _WORKSPACE:
        holder = ModuleType(_WORKSPACE)
        setattr(holder, rest[0], sys.modules[package])
        return holder
    parts = inner.split(".")
    return sys.modules[_joined(package, ".".join(parts[: len(parts) - len(rest)]))]


def _folder(package: str, importing: Mapping[str, Any]) -> list[str]:
    inner = str(importing.get("__package__")).removeprefix(package)
    return inner.strip(".").split(".")


def _joined(package: str, inner: str) -> str:
    return f"{package}.{inner}" if inner else package


def _print(
    *values: object,
    sep: str | None = " ",
    end: str | None = "\n",
    file: TextIO | None = None,
    flush: bool = False,
) -> None:
    out = sys.stderr if file is None else file
    text = (" " if sep is None else sep).join(map(str, values))
    print(masked_output(text) if file is None else text, end=end, file=out, flush=flush)


def _input(prompt: object = "", /) -> str:  # noqa: ARG001 - the signature of Python's own
    raise ToolError("input() cannot be used in a tool; ask a person with use_ui_tool")


def _typing_twin() -> ModuleType:
    """Return `typing` with a TypedDict that pydantic can read."""
    twin = ModuleType("typing")
    vars(twin).update(vars(typing), TypedDict=typing_extensions.TypedDict)
    return twin


#: What `import typing` gives: from Python 3.12 on pydantic reads Python's own TypedDict.
_TYPING: Final = typing if sys.version_info >= (3, 12) else _typing_twin()
