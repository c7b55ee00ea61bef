"""Counts and durations of what happens in runs, from their events: for metrics and `weft top`."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from weft.engine import events as kinds
from weft.engine.events import Event, Usage

#: The values of the labels of one series.
Labels: TypeAlias = tuple[str, ...]

#: The upper bounds of the ranges that durations are counted in, in seconds.
BOUNDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

#: Series of one metric; what is beyond is counted as OTHER. Packages and models name the labels.
MAX_SERIES: Final = 1_000
OTHER: Final = "(other)"

#: The label of tools that models have made up.
UNKNOWN_TOOL: Final = "(unknown)"

#: Runs whose calls under way are remembered; the oldest are forgotten.
_MAX_RUNS: Final = 10_000


class Metric(NamedTuple):
    """What is counted, and the names of its labels."""

    name: str
    text: str
    labels: Labels


TURNS: Final = Metric("turns", "Turns that have ended.", ("workflow", "agent", "outcome"))
RUNS: Final = Metric("runs", "Runs that have ended.", ("workflow", "outcome"))
HANDOFFS: Final = Metric(
    "handoffs",
    "Handoffs, by the rule that decided: its index, or why there was none.",
    ("workflow", "source", "target", "rule"),
)
TOKENS: Final = Metric(
    "tokens", "Tokens of model calls, as far as known.", ("workflow", "agent", "direction")
)
MODEL_SECONDS: Final = Metric(
    "model_duration_seconds", "Durations of model calls, with their retries.", ("model", "outcome")
)
TOOL_SECONDS: Final = Metric(
    "tool_duration_seconds",
    "Durations of tool calls, except of those that asked a person.",
    ("workflow", "tool"),
)
TOOL_CALLS: Final = Metric("tool_calls", "Tool calls that have ended.", ("workflow", "tool"))
TOOL_ERRORS: Final = Metric(
    "tool_errors",
    "Tool calls that have failed, by the kind of error.",
    ("workflow", "tool", "kind"),
)


class Durations:
    """How many durations are in each range, the last of which is open, and their sum."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Tally:
    """Counts and durations by metric and labels; the number of series is bounded."""

    def __init__(self) -> None:
        self.counts: dict[Metric, dict[Labels, int]] = {}
        self.durations: dict[Metric, dict[Labels, Durations]] = {}

    def count(self, metric: Metric, labels: Labels, number: int = 1) -> None:
        """Count something."""
        series = self.counts.setdefault(metric, {})
        if labels not in series and len(series) >= MAX_SERIES:
            labels = (OTHER,) * len(labels)
        series[labels] = series.get(labels, 0) + number

    def time(self, metric: Metric, labels: Labels, seconds: float) -> None:
        """Count a duration."""
        series = self.durations.setdefault(metric, {})
        if labels not in series and len(series) >= MAX_SERIES:
            labels = (OTHER,) * len(labels)
        found = series.get(labels)
        if found is None:
            found = series[labels] = Durations()
        found.add(seconds)


class _Run:
    """What is under way in a run: agents by turn; beginnings of model calls and of tool calls."""

    __slots__ = ("agents", "calls", "tools")

    def __init__(self) -> None:
        self.agents: dict[int, str] = {}
        self.calls: dict[int, int] = {}
        #: The tool, and when it was called; 0: it has asked a person.
        self.tools: dict[str, tuple[str, int]] = {}


class RunTotals(Tally):
    """Counts the events of runs. What began before it was first given events has no duration."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: OrderedDict[tuple[str, str], _Run] = OrderedDict()

    def add(self, app: str, run: str, workflow: str, events: Iterable[Event]) -> None:
        """Count events of a run, in order."""
        key = (app, run)
        known = self._runs.get(key)
        if known is None:
            known = self._runs[key] = _Run()
            if len(self._runs) > _MAX_RUNS:
                self._runs.popitem(last=False)
        for event in events:
            self._add(known, workflow, event)
            if isinstance(event.data, kinds.RunEnded):
                self._runs.pop(key, None)

    def _add(self, run: _Run, workflow: str, event: Event) -> None:  # noqa: C901 - one case for each kind of event
        match event.data:
            case kinds.TurnStarted(agent=agent):
                run.agents[event.turn] = agent
            case kinds.ContextAssembled():
                run.calls[event.seq] = event.at
            case kinds.ModelReplied() as data:
                self._called(run, event, data.model, "replied")
                agent = event.actor.removeprefix("agent:")
                self._spent(workflow, agent, data.usage)
            case kinds.ModelFailed():
                self._called(run, event, "", "failed")
            case kinds.ModelConsulted(usage=usage) | kinds.ConditionJudged(usage=usage):
                self._spent(workflow, run.agents.get(event.turn, ""), usage)
            case kinds.ToolCalled(id=id_, tool=tool):
                run.tools[id_] = (tool, event.at)
            case kinds.RequestOpened(call=call) if call in run.tools:
                run.tools[call] = (run.tools[call][0], 0)
            case kinds.ToolReturned(id=id_):
                self._returned(run, workflow, event, id_)
            case kinds.ToolFailed(id=id_, kind=kind):
                self._returned(run, workflow, event, id_, kind)
            case kinds.HandedOff(source=source, target=target, why=why, rule=rule):
                decided = why if rule is None else str(rule)
                self.count(HANDOFFS, (workflow, source, target, decided))
            case kinds.TurnEnded(agent=agent):
                run.agents.pop(event.turn, None)
                self.count(TURNS, (workflow, agent, "ended"))
            case kinds.TurnFailed(agent=agent, kind=kind):
                run.agents.pop(event.turn, None)
                self.count(TURNS, (workflow, agent, kind))
            case kinds.RunEnded(outcome=outcome):
                self.count(RUNS, (workflow, outcome))
            case _:
                pass

    def _called(self, run: _Run, event: Event, model: str, outcome: str) -> None:
        begun = run.calls.pop(event.cause, None)
        if begun is not None:
            self.time(MODEL_SECONDS, (model, outcome), (event.at - begun) / 1000)

    def _spent(self, workflow: str, agent: str, usage: Usage) -> None:
        if usage.input_tokens:
            self.count(TOKENS, (workflow, agent, "input"), usage.input_tokens)
        if usage.output_tokens:
            self.count(TOKENS, (workflow, agent, "output"), usage.output_tokens)

    def _returned(self, run: _Run, workflow: str, event: Event, id_: str, kind: str = "") -> None:
        tool, begun = run.tools.pop(id_, (event.actor.removeprefix("tool:"), 0))
        tool = UNKNOWN_TOOL if kind == "unknown" else tool
        self.count(TOOL_CALLS, (workflow, tool))
        if kind:
            self.count(TOOL_ERRORS, (workflow, tool, kind))
        if begun:
            self.time(TOOL_SECONDS, (workflow, tool), (event.at - begun) / 1000)
