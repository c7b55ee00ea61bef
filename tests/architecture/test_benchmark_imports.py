"""Finds names that benchmarks import from Weft and that are gone: only people run benchmarks."""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
FILES = sorted(
    path
    for path in FOLDER.rglob("*.py")
    if ".venvs" not in path.parts and "from weft" in path.read_text()
)


def imported_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of everything a file imports from Weft."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
            for alias in node.names:
                yield node.module or "", alias.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_benchmark_imports_only_names_that_exist(path: Path) -> None:
    missing = [
        f"{module}.{name}"
        for module, name in imported_names(path)
        if not hasattr(import_module(module), name) and not find_spec(f"{module}.{name}")
    ]
    assert not missing
