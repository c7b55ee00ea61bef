"""What happens outside the triggers: code sets variables, and the world at large does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.check.code_facts import (
    code_of,
    goes_out_of_sight,
    is_visible,
    path_in,
    reached,
    writes_of,
)
from weft.check.proof.code_paths import Ways, ways_through
from weft.check.proof.happenings import Caller, Doubt, Happening, Setting, When, callers
from weft.check.subject import Subject
from weft.check.values import misfit
from weft.check.variable_writes import Write
from weft.engine.conditions import UNKNOWN
from weft.engine.writes import forbidden
from weft.findings import Json
from weft.spec.sources import DatabaseSource, DerivedSource, EntitySource, ExternalSource
from weft.spec.variables import Variable

_SCALARS: Final = (str, int, float, bool, type(None))


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
        if not writable and caller.when.moment != "auto":
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
                    yield Happening(when, settings, doubt, stage=2, call=call)


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
    allowed = [name for name in writable if _may_write(subject, caller, name)]
    path = path_in(caller.folder, caller.file, subject.code)
    if path is None or not is_visible(subject, path, caller.function):
        why = f"the code of {caller.function} cannot be found"
        doubt = Doubt(why, f"add {caller.folder}/{caller.file}", reported=True)
        yield _anything(caller, allowed, doubt)
        return
    writes = dict.fromkeys(writes_of(subject, path, caller.function))
    hidden = any(write.variable is None for write in writes)
    if hidden or goes_out_of_sight(code_of(subject), caller.function):
        why = f"{path} sets variables in a way that does not show which"
        remedy = 'write context_variables.set("name", value) with the name as a text'
        yield _anything(caller, allowed, Doubt(why, remedy))
    shown = [write for write in writes if write.variable in allowed]
    refused = any(_may_be_refused(subject, caller, write) for write in writes)
    automatic = caller.when.moment == "auto"
    ways = ways_through(subject.code[path], caller.function) if shown or automatic else Ways()
    # Where an automatic tool fails, the run does.
    halts = (refused or ways.raises) and automatic
    if halts or _hesitates(subject, path, caller.function) or (refused and len(writes) > 1):
        yield _parts(caller, shown, halts=halts)
    elif shown:
        yield from _shown(caller, shown, _told(ways, shown))


def _anything(caller: Caller, names: Iterable[str], doubt: Doubt) -> Happening:
    settings = tuple(Setting(name, UNKNOWN, keeps=True) for name in names)
    return Happening(caller.when, settings, doubt, stage=2, call=caller.call)


def _parts(caller: Caller, shown: Sequence[Write], *, halts: bool = False) -> Happening:
    """Return what happens if any part of it may: a value is refused, or not needed any more."""
    name = shown[0].variable if shown else None
    why = f"{caller.function} may leave {name} as it is"
    if halts:
        why = f"{caller.function} fails where a value that it sets is refused or it raises"
        why += ", and so does the run"
    doubt = Doubt(why, "let a trigger set it", name, halts=halts)
    settings = tuple(Setting(it.variable or "", _value(it), keeps=True) for it in shown)
    return Happening(caller.when, settings, doubt, stage=2, call=caller.call)


def _may_be_refused(subject: Subject, caller: Caller, write: Write) -> bool:
    """Tell whether a call may break off at a write."""
    if write.variable is None:
        # What takes away all values comes to those that it may not set, too.
        return write.constant and write.value is None
    variable = subject.spec.variables.get(write.variable)
    if variable is None:
        return False
    if not _may_write(subject, caller, write.variable):
        return True
    source = variable.source
    if isinstance(source, DerivedSource) and source.transitions:
        return True
    value = _value(write)
    if value is UNKNOWN or value is None:
        return False
    return misfit(variable.type, value, subject.models) is not None


def _hesitates(subject: Subject, path: str, function: str) -> bool:
    """Tell whether code may set a variable only if it has no value yet."""
    return any("setdefault" in found.mentions for found in reached(subject, path, function))


def _told(found: Ways, shown: Sequence[Write]) -> Ways:
    """Return what is set on each way through a function, as far as all of it can be told."""
    if not found.writes:
        # Where every way fails, nothing that was set counts.
        return found if found.writes is None else Ways(((),))
    own = [tuple(write for write in way if write in shown) for way in found.writes]
    # What other functions set on its behalf is not told apart.
    complete = {write for way in own for write in way}.issuperset(shown)
    return Ways(tuple(dict.fromkeys(own)) if complete else None, found.related)


def _shown(caller: Caller, shown: Sequence[Write], found: Ways) -> Iterator[Happening]:
    """Yield a happening for each way through the code, or one for all that it might set."""
    name = shown[0].variable or ""
    doubt = Doubt(f"{caller.function} may leave {name} as it is", "let a trigger set it", name)
    ways = [None] if found.writes is None else [_last(way) for way in found.writes]
    if found.writes is None and len(shown) == 1 and not found.related:
        ways = [_last(shown), ()]
    several = len(ways) > 1
    for way in ways:
        bare = Happening(caller.when, way or (), stage=2, call=caller.call)
        if way is None:
            yield _parts(caller, shown)
        elif any(setting.value is UNKNOWN for setting in way):
            why = f"the code of {caller.function} works out what {name} is set to"
            yield replace(bare, doubt=replace(doubt, why=why))
        else:
            yield replace(bare, doubt=replace(doubt, mild=not found.related) if several else None)
    if caller.at:
        sure = not several and ways[0] is not None
        union = tuple(Setting(it.variable or "", _value(it)) for it in shown)
        sure = sure and all(setting.value is not UNKNOWN for setting in union)
        yield Happening(caller.at, union, replace(doubt, mild=not sure))


def _last(way: Sequence[Write]) -> tuple[Setting, ...]:
    """Return what is left when a way has been gone."""
    found = {write.variable: Setting(write.variable or "", _value(write)) for write in way}
    return tuple(found.values())


def _may_write(subject: Subject, caller: Caller, name: str) -> bool:
    writers = (caller.function, *([caller.agent] if caller.agent else []))
    return forbidden(subject.spec.variables, name, writers) is None


def _value(write: Write) -> Json:
    return write.value if write.constant and isinstance(write.value, _SCALARS) else UNKNOWN


def _moments(subject: Subject, writer: str) -> Iterator[tuple[When, str]]:
    if writer in subject.agents:
        yield When("turn", writer), ""
    for caller in callers(subject):
        if caller.function == writer:
            yield caller.when, caller.call
