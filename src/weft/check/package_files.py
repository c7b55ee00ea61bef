"""The Python files of a package: which of them an import means."""

import ast
from collections.abc import Collection, Container, Iterator, Sequence


def file_of(parts: Sequence[str], files: Container[str]) -> str | None:
    """Return the file that a dotted module name, given by its parts, stands for."""
    stem = "/".join(parts)
    return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in files), None)


def places_of(path: str, parts: list[str], level: int) -> Iterator[list[str]]:
    """Yield where an import in a file may look; absolute ones may start in its folder."""
    folder = path.split("/")[:-1]
    if level > len(folder) + 1:
        return
    if level:
        yield [*folder[: len(folder) + 1 - level], *parts]
        return
    inside = parts[2:] if parts[0] == "workflows" else parts
    yield from (inside, [*folder, *inside])


def folders_named(
    path: str, statement: ast.Import | ast.ImportFrom, files: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the folders of the package by whose name code may get at all files in them.

    Each is told by the file that stands for it, whether there is one or not.
    """
    for parts, level in _named_wholly(statement):
        for place in places_of(path, parts, level):
            inside = "".join(f"{it}/" for it in place)
            if any(it.startswith(inside) for it in files):
                yield f"{inside}__init__.py", ""


def _named_wholly(
    statement: ast.Import | ast.ImportFrom,
) -> Iterator[tuple[list[str], int]]:
    """Yield the modules that an import gives a name to, as parts, with the level they start at."""
    for alias in statement.names:
        parts = alias.name.split(".")
        if isinstance(statement, ast.ImportFrom):
            base = statement.module.split(".") if statement.module else []
            yield [*base, *parts], statement.level
        else:
            # `import a.b` gives a meaning to `a`.
            yield parts if alias.asname else parts[:1], 0
