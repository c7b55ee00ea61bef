"""What the measurements say: tables of ratios, and the budgets that Weft is held to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from peers.roster import PEERS, Kind, Measurement

#: Weft may spend so many times the CPU of the floor that keeps nothing, by where Weft keeps runs.
FLOOR_BUDGETS: Final[dict[Kind, float]] = {"memory": 3.0, "sqlite": 5.0, "postgres": 6.0}
#: The same for one conversation after another. PostgreSQL commits each write on its own then, and
#: is not held to a budget.
ALONE_BUDGETS: Final[dict[Kind, float]] = {"memory": 3.0, "sqlite": 5.5}
#: Weft must spend at most this part of the CPU of the best framework.
FRAMEWORK_BUDGET: Final = 1 / 3
MEMORY_BUDGET_MB: Final = 120.0
#: The memory budget speaks of so many conversations at once.
MANY: Final = 500

TITLES: Final[dict[Kind, str]] = {
    "memory": "in memory",
    "sqlite": "durable, in SQLite",
    "postgres": "durable, in PostgreSQL (CPU of client and server)",
}

#: The medians of one level of concurrency, by peer.
Level = Mapping[str, Measurement]


@dataclass(frozen=True, slots=True)
class Budget:
    """One promise, and whether it was kept; a promise without a value could not be checked."""

    text: str
    limit: float
    value: float | None

    @property
    def exceeded(self) -> bool:
        """Whether the promise was broken."""
        return self.value is not None and self.value > self.limit


def middle(measurements: list[Measurement]) -> Measurement:
    """Return the median of every number on its own."""
    return Measurement(
        cpu_ms_per_call=median(one.cpu_ms_per_call for one in measurements),
        wall_s=median(one.wall_s for one in measurements),
        rss_mb=median(one.rss_mb for one in measurements),
        calls=measurements[0].calls,
    )


def best_framework(level: Level, kind: Kind) -> float | None:
    """Return the least CPU that a framework needed, where one was measured."""
    return min(
        (
            measured.cpu_ms_per_call
            for name, measured in level.items()
            if PEERS[name].framework and PEERS[name].journal == kind
        ),
        default=None,
    )


def floor(level: Level, kind: Kind = "memory") -> float | None:
    """Return the CPU of the job written by hand, where it was measured."""
    measured = level.get("floor" if kind == "memory" else f"floor_{kind}")
    return measured.cpu_ms_per_call if measured else None


def table(level: Level, concurrency: int) -> Iterator[str]:
    """Yield the lines of the tables of one level: what lives in memory, then what is durable."""
    for kind, title in TITLES.items():
        names = [name for name in level if PEERS[name].journal == kind]
        if not names:
            continue
        yield f"{concurrency} at once, {title}"
        yield (
            f"  {'peer':<17} {'CPU ms/call':>11} {'x floor':>8} {'x same floor':>13}"
            f" {'x best framework':>17} {'calls/s':>8} {'peak MB':>8}"
        )
        for name in names:
            one = level[name]
            cpu = one.cpu_ms_per_call
            yield (
                f"  {name:<17} {cpu:>11.3f} {_ratio(cpu, floor(level)):>8}"
                f" {_ratio(cpu, floor(level, kind)):>13}"
                f" {_ratio(cpu, best_framework(level, kind)):>17}"
                f" {one.calls / one.wall_s:>8.0f} {one.rss_mb:>8.0f}"
            )
        yield ""


def _ratio(cpu: float, other: float | None) -> str:
    return "" if other is None else f"{cpu / other:.2f}"


def budgets(levels: Mapping[int, Level]) -> Iterator[Budget]:
    """Yield every promise about Weft where it was measured."""
    for concurrency, level in levels.items():
        for kind, limit in (FLOOR_BUDGETS if concurrency > 1 else ALONE_BUDGETS).items():
            name = "weft" if kind == "memory" else f"weft_{kind}"
            if name not in level:
                continue
            weft = level[name]
            at = f"{name}, {concurrency} at once:"
            by_hand, best = floor(level), best_framework(level, kind)
            yield Budget(f"{at} CPU / floor", limit, _quotient(weft, by_hand))
            if kind != "postgres":  # No framework keeps its runs there.
                yield Budget(f"{at} CPU / best framework", FRAMEWORK_BUDGET, _quotient(weft, best))
            if concurrency >= MANY:
                yield Budget(f"{at} peak MB", MEMORY_BUDGET_MB, weft.rss_mb)


def _quotient(weft: Measurement, other: float | None) -> float | None:
    return None if other is None else weft.cpu_ms_per_call / other


def judgement(promises: list[Budget]) -> Iterator[str]:
    """Yield one line per promise."""
    for one in promises:
        if one.value is None:
            yield f"  {one.text:<48} not checked: what it is compared with was not measured"
        else:
            mark = "  over" if one.exceeded else ""
            yield f"  {one.text:<48} {one.value:>8.2f} (budget {one.limit:.2f}){mark}"
