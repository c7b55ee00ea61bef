"""Ways through a conversation, in words."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from weft.check.explore.chart import Chart
from weft.check.explore.reach import Node, Path
from weft.findings import Json

#: A longer way is shortened in the middle.
_MOST_WORDS: Final = 16


def in_words(chart: Chart, path: Path) -> str:
    """Write a way as `A -> (x = true) -> B`: who speaks, and what is set in between.

    An agent that is passed over before it can reply is marked as such.
    """
    words = [*_begin(chart, path), *_follow(chart, path)]
    if len(words) > _MOST_WORDS:
        half = _MOST_WORDS // 2
        words = [*words[:half], "...", *words[-half:]]
    return " -> ".join(words)


def show(value: Json) -> str:
    """Write a value; texts that are not empty go without quotes."""
    return value if isinstance(value, str) and value else json.dumps(value)


def _begin(chart: Chart, path: Path) -> Iterator[str]:
    """Name what differs from run to run at the start, or who speaks where the way begins."""
    if chart.points[path.start.point].kind != "start":
        yield _name(chart, path, 0)
        return
    several = [name for name, found in chart.ground.domains.items() if len(found.initial) > 1]
    if several:
        yield _values(chart, path.start, several)


def _follow(chart: Chart, path: Path) -> Iterator[str]:
    before = path.start
    for position, (_, node) in enumerate(path.steps, start=1):
        changed = [
            name
            for name, axis in chart.ground.space.axes.items()
            if name in chart.ground.domains
            and axis.value_at(before.values) is not axis.value_at(node.values)
        ]
        if changed:
            yield _values(chart, node, changed)
        if chart.points[node.point].kind not in ("speak", "said", "decide", "start"):
            yield _name(chart, path, position)
        before = node


def _name(chart: Chart, path: Path, position: int) -> str:
    """Name the point that a way has come to after so many steps."""
    nodes = [path.start, *(node for _, node in path.steps)]
    here = chart.points[nodes[position].point]
    after = chart.points[nodes[position + 1].point] if position < len(path.steps) else None
    if here.kind in ("wait", "end"):
        return "user" if here.kind == "wait" else "end"
    passed_over = here.kind == "enter" and after is not None and after.kind != "speak"
    return f"{here.agent} (passed over)" if passed_over else here.agent


def _values(chart: Chart, node: Node, names: Iterable[str]) -> str:
    axes = chart.ground.space.axes
    return f"({', '.join(f'{n} = {show(axes[n].value_at(node.values))}' for n in names)})"
