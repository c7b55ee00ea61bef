"""What must hold after the stress, checked from the rows of the store and the logs of the nodes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

from stress.node import APP, link
from weft.engine.events import Event, RunStarted, VariableSet
from weft.ports.scope import Scope
from weft.ports.store import Store


class Claim(NamedTuple):
    """An owner has claimed a run, and read it up to an event."""

    owner: str
    seq: int
    at: int


class Report(NamedTuple):
    """What was found; all but `mails` and `runs` must be empty."""

    runs: int
    mails: int
    lost: list[str]
    twice: list[str]
    broken_chains: list[str]
    stale_appends: list[str]
    names_twice: list[str]
    timers: list[str]

    @property
    def faults(self) -> dict[str, list[str]]:
        """Return what must not be there, by kind."""
        return {
            name: found
            for name, found in self._asdict().items()
            if isinstance(found, list) and found
        }


#: Milliseconds for which PostgreSQL may keep a claim in memory: it need not be on disk.
UNWRITTEN = 1000


async def check(
    store: Store, logs: Iterable[Path], crashes: Sequence[tuple[int, int]] = ()
) -> Report:
    """Compare the store with what the nodes were told; claims before a crash do not count."""
    lines = [line.split() for log in logs for line in log.read_text().splitlines()]
    acked = {words[1] for words in lines if words[0] == "ack"}
    # In the order of time: after a lost connection a run may be claimed again at the same event.
    claimed = sorted(
        (words for words in lines if words[0] == "claim" and not _is_lost(int(words[4]), crashes)),
        key=lambda words: int(words[4]),
    )
    claims: dict[str, list[Claim]] = defaultdict(list)
    for _, owner, run, seq, at in claimed:
        claims[run].append(Claim(owner, int(seq), int(at)))
    rows = await store.runs(Scope.operator(APP), limit=1_000_000)
    taken: Counter[str] = Counter()
    chains: list[str] = []
    stale: list[str] = []
    timers: list[str] = []
    lives: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in rows:
        events = await store.read(Scope.operator(APP), row.run)
        if [event.seq for event in events] != list(range(1, row.seq + 1)):
            chains.append(f"{row.run}: a gap in the numbers")
        contents = list(_contents(events))
        taken.update(str(content["mail"]) for content in contents if "mail" in content)
        chains += _broken_links(row.run, contents)
        stale += _stale_appends(row.run, events, claims[row.run])
        timers += _timer_faults(row.run, contents)
        begun = events[0].data
        if isinstance(begun, RunStarted) and begun.correlation:
            ended = events[-1].seq if row.status == "ended" else -1
            lives[begun.correlation].append((row.started_at, ended, row.run))
    open_names = Counter(row.name for row in rows if row.name and row.status != "ended")
    return Report(
        runs=len(rows),
        mails=len(acked),
        lost=sorted(acked - taken.keys()),
        twice=sorted(id_ for id_, count in taken.items() if count > 1),
        broken_chains=chains,
        stale_appends=stale,
        names_twice=sorted(name for name, count in open_names.items() if count > 1),
        timers=timers,
    )


def _is_lost(at: int, crashes: Iterable[tuple[int, int]]) -> bool:
    return any(begun - UNWRITTEN < at <= ended for begun, ended in crashes)


def _contents(events: Iterable[Event]) -> Iterable[dict[str, Any]]:
    for event in events:
        if isinstance(event.data, VariableSet):
            yield cast("dict[str, Any]", event.data.value)


def _broken_links(run: str, contents: Iterable[dict[str, Any]]) -> list[str]:
    before = ""
    for number, content in enumerate(contents, start=1):
        bare = {name: value for name, value in content.items() if name != "hash"}
        if content["hash"] != link(before, bare):
            return [f"{run}: link {number}"]
        before = content["hash"]
    return []


def _stale_appends(run: str, events: Sequence[Event], claims: Sequence[Claim]) -> list[str]:
    """Find owners that wrote the next event of a run after another had taken it over."""
    held = [(event.seq, content) for event in events for content in _contents([event])]
    return [
        f"{run}: event {seq + 1}"
        for (seq, before), (_, after) in pairwise(held)
        if before["held"]
        and after["owner"] == before["owner"]
        and _is_taken_over(claims, seq, after["owner"])
    ]


def _is_taken_over(claims: Sequence[Claim], seq: int, owner: str) -> bool:
    """Tell whether another owner claimed a run at an event, after the last claim of this one.

    The event of a claim is that of the run when it was read, which may be long after the claim.
    """
    last = max(
        (claim.at for claim in claims if claim.owner == owner and claim.seq <= seq), default=0
    )
    return any(claim.owner != owner and claim.seq == seq and claim.at > last for claim in claims)


def _timer_faults(run: str, contents: Iterable[dict[str, Any]]) -> list[str]:
    set_: Counter[int] = Counter()
    fired: Counter[int] = Counter()
    for content in contents:
        set_.update([content["set"]] if "set" in content else ())
        fired.update([content["fired"]] if "fired" in content else ())
    return [f"{run}: set {set_}, fired {fired}"] if set_ != fired else []
