"""What starting costs: CPU of `import weft` and `weft --help` against `import pydantic` alone.

All three run in fresh interpreters, in turn, so that a busy or slow machine weighs on each of them
alike; only their ratios are held against a budget. Usage: python benchmarks/startup.py [--enforce]
"""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from statistics import median
from typing import Final

ROUNDS: Final = 15

PYTHON: Final = sys.executable
#: The console script of the environment that runs this file.
WEFT: Final = str(Path(sys.executable).with_name("weft"))

FLOOR: Final = "import pydantic"
COMMANDS: Final = {
    FLOOR: (PYTHON, "-c", "import pydantic"),
    "import weft": (PYTHON, "-c", "import weft"),
    "weft --help": (WEFT, "--help"),
}
#: At most so many times the CPU of the floor.
BUDGETS: Final = {"import weft": 2.5, "weft --help": 4.0}


def cpu_seconds(command: tuple[str, ...]) -> float:
    """Run a command to its end and return the processor time it took, user and system."""
    silence = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    process = os.posix_spawn(command[0], command, os.environ, file_actions=[silence])
    _, status, usage = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        sys.exit(f"cannot measure: `{' '.join(command)}` ended with exit code {code}")
    return usage.ru_utime + usage.ru_stime


def measure() -> dict[str, float]:
    """Return the median CPU seconds of every command."""
    for command in COMMANDS.values():
        cpu_seconds(command)  # the first start writes bytecode caches, which is not what we ask
    rounds = [
        {name: cpu_seconds(command) for name, command in COMMANDS.items()} for _ in range(ROUNDS)
    ]
    return {name: median(one[name] for one in rounds) for name in COMMANDS}


def report(medians: dict[str, float]) -> bool:
    """Print one line per command and tell whether all are within budget."""
    within = True
    print(f"{'command':<16} {'CPU ms':>8} {'ratio':>7} {'budget':>7}")
    for name, seconds in medians.items():
        ratio = seconds / medians[FLOOR]
        budget = BUDGETS.get(name)
        over = budget is not None and ratio > budget
        within = within and not over
        limit = "" if budget is None else f"{budget:.1f}"
        print(f"{name:<16} {seconds * 1000:8.1f} {ratio:7.2f} {limit:>7} {'over' if over else ''}")
    return within


def main() -> int:
    """Measure, print, and fail on request when a budget is exceeded."""
    parser = ArgumentParser(description="Measure what starting Weft costs.")
    parser.add_argument(
        "--enforce", action="store_true", help="exit with 1 when a budget is exceeded"
    )
    options = parser.parse_args()
    within = report(measure())
    return 1 if options.enforce and not within else 0


if __name__ == "__main__":
    sys.exit(main())
