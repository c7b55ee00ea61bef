"""What a name at the top level of a file stands for, if that is certainly no function."""

import ast
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

#: What cannot be called as a function is.
Thing: TypeAlias = Literal["a class", "a module", "a value"]

#: Expressions whose value nobody can call.
_VALUES: Final = (
    ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.JoinedStr, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def things_in(statement: ast.stmt) -> Iterator[tuple[str, Thing]]:
    """Yield the names to which a top-level statement gives something that is no function."""
    match statement:
        case ast.ClassDef(name=name, decorator_list=[]):
            yield name, "a class"
        case ast.Import(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name.partition(".")[0], "a module"
        case ast.Assign(targets=targets, value=value) if isinstance(value, _VALUES):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, "a value"
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if isinstance(value, _VALUES):
            yield name, "a value"
        case _:
            return
