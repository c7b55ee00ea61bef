"""Type checkers know the state through the whole chain, and find what is wrong."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = ROOT / "tests" / "typing"


def lines_with_errors(file: Path) -> list[int]:
    """Return the lines that pyright objects to, each once."""
    found = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(found.stdout)["generalDiagnostics"]
    return sorted({entry["range"]["start"]["line"] + 1 for entry in said})


def test_correct_code_type_checks():
    assert lines_with_errors(FILES / "flow_right.py") == []


def test_every_mistake_is_found_and_nothing_else():
    file = FILES / "flow_wrong.py"
    lines = file.read_text().splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.endswith("# error")]
    assert len(marked) > 20
    assert lines_with_errors(file) == marked
