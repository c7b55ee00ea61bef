"""Import contracts hold, and they refuse a forbidden import."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "weft"
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

#: Layers that must stay free of I/O and of every package but pydantic.
PURE = ("ids.py", "findings.py", "catalogue", "errors.py", "spec", "engine", "check")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Judge the sources under `root` by the contracts in its pyproject.toml."""
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def pure_files() -> Iterator[Path]:
    for name in PURE:
        path = SOURCE / name
        yield from path.rglob("*.py") if path.is_dir() else [path]


def imported_packages(file: Path) -> Iterator[str]:
    """Yield the top-level package of every import in a file, wherever it stands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0]


def test_every_contract_is_kept():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("ids.py", "import weft.cli"),
        ("spec/__init__.py", "import weft.check"),
        ("errors.py", "import os"),
        ("adapters/system_clock.py", "import weft.adapters.vault"),
        ("engine/__init__.py", "import yaml"),
        ("check/__init__.py", "def now():\n    import time\n    return time.time()"),
    ],
)
def test_a_forbidden_import_is_refused(module: str, line: str, tmp_path: Path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(SOURCE, tmp_path / "src" / "weft", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "src" / "weft" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout


def test_pure_layers_use_only_pydantic_and_the_standard_library():
    allowed = sys.stdlib_module_names | {"pydantic", "pydantic_core", "weft"}
    strangers = {
        (str(file.relative_to(ROOT)), package)
        for file in pure_files()
        for package in imported_packages(file)
        if package not in allowed
    }
    assert strangers == set()


def test_pure_layers_are_found():
    assert {file.relative_to(SOURCE).parts[0] for file in pure_files()} == set(PURE)
