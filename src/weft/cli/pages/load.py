"""The load of a server or of a store: workers, runs, agents, handoffs, tools and models."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from weft.cli.streams import Streams, clean
from weft.findings import Json
from weft.inspect.totals import (
    BOUNDS,
    HANDOFFS,
    MODEL_SECONDS,
    RUNS,
    TOKENS,
    TOOL_CALLS,
    TOOL_ERRORS,
    TOOL_SECONDS,
    TURNS,
    Durations,
    Tally,
)

#: The share of calls that were faster than the time that is shown.
_SHARE: Final = 0.95

_WORKER_HEAD: Final = ("WORKER", "RUNS", "HEARTBEAT")
_AGENT_HEAD: Final = ("AGENT", "TURNS", "FAILED", "TOKENS IN", "TOKENS OUT")
_HANDOFF_HEAD: Final = ("HANDOFF", "RULE", "TIMES")
_TOOL_HEAD: Final = ("TOOL", "CALLS", "ERRORS", "MEAN", "95 % WITHIN")
_MODEL_HEAD: Final = ("MODEL", "CALLS", "FAILED", "MEAN", "95 % WITHIN")

_HANDOFF: Final = "{workflow}.{source} to {target}"

#: What is counted of each agent.
_OF_AGENT: Final = ("turns", "failed", "input_tokens", "output_tokens")


class WorkerLoad(NamedTuple):
    """A worker: how many runs it holds, and how long ago its last heartbeat was, if known."""

    owner: str
    runs: int
    heartbeat_age_seconds: float | None


@dataclass(frozen=True)
class Load:
    """What happens at a moment, and what has happened since counting began."""

    #: Where this was read, and what is counted.
    source: str
    counted: str
    workers: Sequence[WorkerLoad]
    #: How many runs wait for a worker.
    queued: int
    #: How many sockets are open; None where there is no server.
    sockets: int | None
    tally: Tally

    def data(self) -> dict[str, Any]:
        """Return the load as JSON."""
        turns, tokens = self._sums(TURNS, -1), self._sums(TOKENS, -1)
        ended = turns.pop("ended", 0)
        return {
            "source": self.source,
            "counted": self.counted,
            "workers": self.workers,
            "queued": self.queued,
            "sockets": self.sockets,
            "runs": {"in_work": self._in_work, "ended": dict(self._sums(RUNS, -1))},
            "turns": {"ended": ended, "failed": sum(turns.values())},
            "tokens": {name: tokens[name] for name in ("input", "output")},
            "agents": list(self._agents()),
            "handoffs": list(self._handoffs()),
            "tools": list(self._tools()),
            "models": list(self._models()),
        }

    def page(self, streams: Streams) -> str:
        """Return the sums, then a table each of workers, agents, handoffs, tools and models."""
        found = self.data()
        ended = ", ".join(f"{number} {name}" for name, number in found["runs"]["ended"].items())
        facts = {
            "source": f"{self.source} ({self.counted})",
            "runs": f"{self._in_work} in work, {self.queued} queued; ended: {ended or 'none'}",
            "turns": f"{found['turns']['ended']:,} ended, {found['turns']['failed']:,} failed",
            "tokens": f"{found['tokens']['input']:,} in, {found['tokens']['output']:,} out",
            "sockets": "" if self.sockets is None else str(self.sockets),
        }
        sums = "\n".join(f"{name:8} {clean(text)}" for name, text in facts.items() if text)
        tables = {
            _WORKER_HEAD: [(each.owner, str(each.runs), _age(each)) for each in self.workers],
            _AGENT_HEAD: [
                (f"{each['workflow']}.{each['agent']}", *(f"{each[name]:,}" for name in _OF_AGENT))
                for each in found["agents"]
            ],
            _HANDOFF_HEAD: [
                (_HANDOFF.format_map(each), each["rule"], f"{each['times']:,}")
                for each in found["handoffs"]
            ],
            _TOOL_HEAD: [
                _row(f"{each['workflow']}.{each['tool']}", each) for each in found["tools"]
            ],
            _MODEL_HEAD: [_row(each["model"], each) for each in found["models"]],
        }
        shown = (streams.table([head, *rows]) for head, rows in tables.items() if rows)
        return "\n\n".join((sums, *shown))

    @property
    def _in_work(self) -> int:
        return sum(worker.runs for worker in self.workers)

    def _sums(self, metric: Any, place: int) -> "Counter[str]":  # noqa: ANN401 - a Metric
        """Return the counts of a metric by one of its labels."""
        sums: Counter[str] = Counter()
        for labels, number in self.tally.counts.get(metric, {}).items():
            sums[labels[place]] += number
        return sums

    def _agents(self) -> Iterator[dict[str, Json]]:
        """Yield the turns and tokens of each agent."""
        found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for (*agent, outcome), number in self.tally.counts.get(TURNS, {}).items():
            found[tuple(agent)]["turns" if outcome == "ended" else "failed"] += number
        for (*agent, direction), number in self.tally.counts.get(TOKENS, {}).items():
            found[tuple(agent)][f"{direction}_tokens"] += number
        for (workflow, agent), sums in sorted(found.items()):
            names: dict[str, Json] = {"workflow": workflow, "agent": agent}
            yield {**names, **{name: sums[name] for name in _OF_AGENT}}

    def _handoffs(self) -> Iterator[dict[str, Json]]:
        """Yield how often each rule has handed over, the most frequent one first."""
        found = self.tally.counts.get(HANDOFFS, {})
        for labels, number in sorted(found.items(), key=lambda item: (-item[1], item[0])):
            yield {**dict(zip(HANDOFFS.labels, labels, strict=True)), "times": number}

    def _tools(self) -> Iterator[dict[str, Json]]:
        """Yield what is known of each tool, the most used one first."""
        errors: Counter[tuple[str, ...]] = Counter()
        for labels, number in self.tally.counts.get(TOOL_ERRORS, {}).items():
            errors[labels[:2]] += number
        durations = self.tally.durations.get(TOOL_SECONDS, {})
        calls = self.tally.counts.get(TOOL_CALLS, {})
        for labels, number in sorted(calls.items(), key=lambda item: (-item[1], item[0])):
            names: dict[str, Json] = {"workflow": labels[0], "tool": labels[1]}
            sums = {"calls": number, "failed": errors[labels]}
            yield {**names, **sums, **_times(durations.get(labels))}

    def _models(self) -> Iterator[dict[str, Json]]:
        """Yield what is known of each model."""
        durations = self.tally.durations.get(MODEL_SECONDS, {})
        failed = {
            labels[0]: sum(found.counts)
            for labels, found in durations.items()
            if labels[1] == "failed"
        }
        for (model, outcome), found in sorted(durations.items()):
            if outcome == "replied":
                sums = {"calls": sum(found.counts), "failed": failed.get(model, 0)}
                yield {"model": model, **sums, **_times(found)}


def _times(found: Durations | None) -> dict[str, Json]:
    """Return the mean of durations, and within which time most of them were; None if unknown."""
    total = 0 if found is None else sum(found.counts)
    if found is None or not total:
        return {"mean_seconds": None, "most_within_seconds": None}
    reached, within = 0, None
    for bound, number in zip((*BOUNDS, None), found.counts, strict=True):
        reached, within = reached + number, bound
        if reached >= _SHARE * total:
            break
    return {"mean_seconds": found.seconds / total, "most_within_seconds": within}


def _row(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    mean, within = found["mean_seconds"], found["most_within_seconds"]
    shown = "" if mean is None else f"{mean:.3f} s"
    bound = "" if mean is None else "longer" if within is None else f"{within:g} s"
    return (name, str(found["calls"]), str(found["failed"]), shown, bound)


def _age(worker: WorkerLoad) -> str:
    age = worker.heartbeat_age_seconds
    return "unknown" if age is None else f"{age:.1f} s ago"
