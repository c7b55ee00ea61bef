"""What checking costs: one typical package, and how that grows with the workspace.

    python benchmarks/check.py [--enforce]

The typical package is the shipped FeedbackLoop, of eight files; the large one is the shipped
CustomerSupportRouter, of nearly twice as many. Every copy differs in every file, so that nothing is
measured that was remembered from another. Budgets: at most 15 ms of CPU for one package of either
size when warm, and at most 1.3 times the cost per package at 1,000 packages as at 100.
"""

import gc
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from weft.packages.review import review
from weft.packages.workspace import find_packages, shipped_folder

TYPICAL = "FeedbackLoop"
LARGE = "CustomerSupportRouter"
PACKAGE_BUDGET_MS = 15.0
GROWTH_BUDGET = 1.3


def cpu_ms(path: Path) -> float:
    """Return the CPU time of one check of everything at a path, in milliseconds."""
    gc.collect()
    before = time.process_time()
    review(path)
    return (time.process_time() - before) * 1000


def workspace(parent: Path, package: str, count: int) -> Path:
    """Make a workspace of copies of a shipped package, each with a name of its own."""
    folder = parent / package / str(count)
    for number in range(count):
        name = f"Package{number}"
        copy = folder / "workflows" / name
        shutil.copytree(shipped_folder() / package, copy)
        for path in copy.rglob("*.py"):
            path.write_text(f"{path.read_text()}\n# {name}\n")
        for path in copy.glob("*.json"):
            path.write_text(path.read_text().replace(package, name) + " " * number)
    return folder


def one_package(parent: Path, package: str) -> tuple[int, float]:
    """Return how many files a package has, and the CPU time of checking it when warm."""
    warm_up, *copies = find_packages(workspace(parent, package, 26))
    files = review(warm_up).files
    return files, statistics.median(cpu_ms(copy) for copy in copies)


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        parent = Path(folder)
        costs = [one_package(parent, package) for package in (TYPICAL, LARGE)]
        small, large = workspace(parent, LARGE, 100), workspace(parent, LARGE, 1000)
        per_small = statistics.median(cpu_ms(small) / 100 for _ in range(3))
        per_large = statistics.median(cpu_ms(large) / 1000 for _ in range(3))
    growth = per_large / per_small
    for files, cost in costs:
        print(f"one of {files:2} files, warm: {cost:5.2f} ms CPU (budget {PACKAGE_BUDGET_MS:g})")
    print(f"per package, 100:  {per_small:6.2f} ms CPU")
    print(f"per package, 1000: {per_large:6.2f} ms CPU")
    print(f"growth per package: {growth:5.2f} x (budget {GROWTH_BUDGET})")
    ok = max(cost for _, cost in costs) <= PACKAGE_BUDGET_MS and growth <= GROWTH_BUDGET
    return 1 if "--enforce" in sys.argv and not ok else 0


if __name__ == "__main__":
    raise SystemExit(main())
