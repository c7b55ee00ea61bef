"""What happens outside the triggers: code sets variables, and the world at large does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from weft.check.code_facts import writes_of
from weft.check.proof.code_doubts import (
    FunctionPlace,
    broken_off,
    left_alone,
    may_write,
    missing,
    out_of_sight,
    place_of_call,
    sent_back,
    sets_alone,
    value_of,
    ways_of_call,
)
from weft.check.proof.code_paths import Ways
from weft.check.proof.happenings import (
    RUNS,
    Caller,
    Doubt,
    Happening,
    Setting,
    When,
    callers,
)
from weft.check.subject import Subject
from weft.check.variable_writes import Write
from weft.engine.conditions import UNKNOWN
from weft.spec.variables import (
    DatabaseSource,
    DerivedSource,
    EntitySource,
    ExternalSource,
    Variable,
)


def written(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    """Yield the happenings by which code and declared writers set one of `variables`.

    A declared writer whose code shows no write may set any value, or none: it has the right to.
    """
    writable = {
        name: variable
        for name, variable in variables.items()
        if isinstance(variable.source, DerivedSource | EntitySource)
    }
    shown: set[tuple[str, str]] = set()
    for caller in callers(subject):
        if not writable and not caller.automatic:
            continue
        for happening in _happenings(subject, caller, writable):
            yield happening
            for setting in happening.settings:
                name = setting.variable
                shown |= {(caller.function, name), (caller.agent or "", name)}
    for name, variable in writable.items():
        for writer in variable.writers or ():
            if (writer, name) not in shown:
                why = f"nothing shows when and to what {writer} sets {name}"
                doubt = Doubt(why, f"set {name} by a trigger", name)
                settings = (Setting(name, UNKNOWN, keeps=True),)
                for when, call in _moments(subject, writer):
                    yield Happening(when, settings, doubt, stage=RUNS, call=call)


def outside(variables: Mapping[str, Variable]) -> Iterator[Happening]:
    """Yield the happenings by which a value changes because it is read anew during a run."""
    for name, variable in variables.items():
        source = variable.source
        if isinstance(source, ExternalSource) or (
            isinstance(source, DatabaseSource) and source.refresh_strategy != "once"
        ):
            doubt = Doubt(f"{name} may change outside the run", f"do not route on {name}", name)
            for when in (When("turn"), When("wait")):
                yield Happening(when, (Setting(name, UNKNOWN),), doubt)


def _happenings(
    subject: Subject, caller: Caller, writable: Mapping[str, Variable]
) -> Iterator[Happening]:
    allowed = [name for name in writable if may_write(subject, caller, name)]
    place = place_of_call(subject, caller)
    if place is None:
        yield from _unseen(caller, allowed, missing(caller))
    elif doubt := out_of_sight(subject, caller, place):
        yield from _unseen(caller, allowed, doubt)
    else:
        yield from _seen(subject, caller, place, allowed)


def _unseen(caller: Caller, allowed: Iterable[str], doubt: Doubt) -> Iterator[Happening]:
    """Yield what code does that does not show it: anything it has the right to."""
    yield from _sent_back(caller, doubt)
    yield from _perhaps(caller, (Setting(name, UNKNOWN) for name in allowed), doubt)


def _seen(
    subject: Subject, caller: Caller, place: FunctionPlace, allowed: Sequence[str]
) -> Iterator[Happening]:
    writes = dict.fromkeys(writes_of(subject, *place))
    shown = [write for write in writes if write.variable in allowed]
    ways = ways_of_call(subject, caller) if shown and sets_alone(subject, place) else Ways()
    back = sent_back(subject, caller, place)
    doubt = back or broken_off(subject, caller, place, shown)
    if back:
        yield from _sent_back(caller, back)
    if doubt:
        yield from _perhaps(caller, _settings(shown), doubt)
    elif shown:
        yield from _shown(caller, shown, ways)


def _sent_back(caller: Caller, doubt: Doubt) -> Iterator[Happening]:
    """Yield that a tool which is called with a reply may ask for another one."""
    if caller.automatic:
        yield Happening(When("back", caller.agent), (), doubt)


def _perhaps(caller: Caller, settings: Iterable[Setting], doubt: Doubt) -> Iterator[Happening]:
    """Yield that any part of some settings may happen, or nothing of it."""
    parts = tuple(replace(setting, keeps=True) for setting in settings)
    yield Happening(caller.when, parts, doubt, stage=RUNS, call=caller.call)
    if caller.at:
        yield Happening(caller.at, parts, replace(doubt, mild=True))


def _settings(writes: Iterable[Write]) -> Iterator[Setting]:
    return (Setting(write.variable or "", value_of(write)) for write in writes)


def _shown(caller: Caller, shown: Sequence[Write], found: Ways) -> Iterator[Happening]:
    """Yield a happening for each way through the code, or one for all that it might set."""
    doubt, union = left_alone(caller, shown), tuple(_settings(shown))
    if found.paths is None:
        yield from _perhaps(caller, union, doubt)
        return
    ways = {tuple(it for it in path.writes if it in shown): None for path in found.paths}
    # On other ways it may set something else, or what it sets may not count.
    several = len(ways) > 1 or found.fails or found.asks
    for way in map(_last, ways or [()]):
        bare = Happening(caller.when, way, stage=RUNS, call=caller.call)
        if any(setting.value is UNKNOWN for setting in way):
            why = f"the code of {caller.function} works out what {doubt.variable} is set to"
            yield replace(bare, doubt=replace(doubt, why=why))
        else:
            yield replace(bare, doubt=replace(doubt, mild=found.free) if several else None)
    if caller.at:
        sure = not several and all(setting.value is not UNKNOWN for setting in union)
        yield Happening(caller.at, union, replace(doubt, mild=not sure))


def _last(way: Sequence[Write]) -> tuple[Setting, ...]:
    """Return what is left when a way has been gone."""
    found = {setting.variable: setting for setting in _settings(way)}
    return tuple(found.values())


def _moments(subject: Subject, writer: str) -> Iterator[tuple[When, str]]:
    if writer in subject.agents:
        yield When("turn", writer), ""
    for caller in callers(subject):
        if caller.function == writer:
            yield caller.when, caller.call
