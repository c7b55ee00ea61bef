"""What checking costs: one typical package, and how that grows with the workspace.

    python benchmarks/check.py [--enforce]

The package is the shipped CustomerSupportRouter; every copy differs in every file, so that nothing
is measured that was remembered from another. Budgets: at most 15 ms of CPU for one package when
warm, and at most 1.3 times the cost per package at 1,000 packages as at 100.
"""

import gc
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from weft.packages.review import review
from weft.packages.shipped import shipped_folder
from weft.packages.workspace import find_packages

PACKAGE_BUDGET_MS = 15.0
GROWTH_BUDGET = 1.3


def cpu_ms(path: Path) -> float:
    """Return the CPU time of one check of everything at a path, in milliseconds."""
    gc.collect()
    before = time.process_time()
    review(path)
    return (time.process_time() - before) * 1000


def workspace(parent: Path, count: int) -> Path:
    """Make a workspace of copies of the typical package, each with a name of its own."""
    folder = parent / str(count)
    for number in range(count):
        name = f"Package{number}"
        copy = folder / "workflows" / name
        shutil.copytree(shipped_folder() / "CustomerSupportRouter", copy)
        for path in copy.rglob("*.py"):
            path.write_text(f"{path.read_text()}\n# {name}\n")
        for path in copy.glob("*.json"):
            path.write_text(path.read_text().replace("CustomerSupportRouter", name) + " " * number)
    return folder


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    with tempfile.TemporaryDirectory() as parent:
        warm_up, *copies = find_packages(workspace(Path(parent), 26))
        review(warm_up)
        one = statistics.median(cpu_ms(copy) for copy in copies)
        small, large = workspace(Path(parent), 100), workspace(Path(parent), 1000)
        per_small = statistics.median(cpu_ms(small) / 100 for _ in range(3))
        per_large = statistics.median(cpu_ms(large) / 1000 for _ in range(3))
    growth = per_large / per_small
    print(f"one package, warm: {one:6.2f} ms CPU (budget {PACKAGE_BUDGET_MS:g})")
    print(f"per package, 100:  {per_small:6.2f} ms CPU")
    print(f"per package, 1000: {per_large:6.2f} ms CPU")
    print(f"growth per package: {growth:5.2f} x (budget {GROWTH_BUDGET})")
    ok = one <= PACKAGE_BUDGET_MS and growth <= GROWTH_BUDGET
    return 1 if "--enforce" in sys.argv and not ok else 0


if __name__ == "__main__":
    raise SystemExit(main())
