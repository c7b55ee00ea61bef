"""Events outside the triggers: code that sets variables, declared writers, the world at large."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.check.code_facts import code_of, path_in, writes_of
from weft.check.proof.code_paths import paths_of
from weft.check.proof.events import Caller, Doubt, Event, Setting, When, callers
from weft.check.proof.handed_on import goes_out_of_sight
from weft.check.subject import Subject
from weft.check.variable_writes import Write
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.sources import DatabaseSource, DerivedSource, EntitySource, ExternalSource
from weft.spec.variables import Variable

_SCALARS: Final = (str, int, float, bool, type(None))


def written(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Event]:
    """Yield the events by which code and declared writers set one of `variables`.

    A declared writer whose code shows no write may set any value, or none: it has the right to.
    """
    writable = {
        name: variable
        for name, variable in variables.items()
        if isinstance(variable.source, DerivedSource | EntitySource)
    }
    shown: set[tuple[str, str]] = set()
    for caller in callers(subject) if writable else ():
        for event in _events(subject, caller, writable):
            yield event
            for setting in event.settings:
                name = setting.variable
                shown |= {(caller.function, name), (caller.agent or "", name)}
    for name, variable in writable.items():
        for writer in variable.writers or ():
            if (writer, name) not in shown:
                why = f"nothing shows when and to what {writer} sets {name}"
                doubt = Doubt(why, f"set {name} by a trigger", name)
                for when in _moments(subject, writer):
                    yield Event(when, (Setting(name, UNKNOWN, keeps=True),), doubt, stage=2)


def outside(variables: Mapping[str, Variable]) -> Iterator[Event]:
    """Yield the events by which a value changes because it is read anew during a run."""
    for name, variable in variables.items():
        source = variable.source
        if isinstance(source, ExternalSource) or (
            isinstance(source, DatabaseSource) and source.refresh_strategy != "once"
        ):
            doubt = Doubt(f"{name} may change outside the run", f"do not route on {name}", name)
            for when in (When("turn"), When("wait")):
                yield Event(when, (Setting(name, UNKNOWN),), doubt)


def _events(subject: Subject, caller: Caller, writable: Mapping[str, Variable]) -> Iterator[Event]:
    allowed = [name for name in writable if _may_write(writable[name], caller)]
    path = path_in(caller.folder, caller.file, subject.code)
    if path is None or not _is_visible(subject, path, caller.function):
        why = f"the code of {caller.function} cannot be found"
        doubt = Doubt(why, f"add {caller.folder}/{caller.file}", reported=True)
        yield _anything(caller, allowed, doubt)
        return
    writes = dict.fromkeys(writes_of(subject, path, caller.function))
    hidden = any(write.variable is None for write in writes)
    if hidden or goes_out_of_sight(subject.code, caller.function):
        why = f"{path} sets variables in a way that does not show which"
        remedy = 'write context_variables.set("name", value) with the name as a text'
        yield _anything(caller, allowed, Doubt(why, remedy))
    shown = [write for write in writes if write.variable in allowed]
    if shown:
        yield from _shown(caller, shown, _paths(subject, path, caller.function, shown), writable)


def _anything(caller: Caller, names: Iterable[str], doubt: Doubt) -> Event:
    settings = tuple(Setting(name, UNKNOWN, keeps=True) for name in names)
    return Event(caller.when, settings, doubt, stage=2)


def _paths(
    subject: Subject, path: str, function: str, shown: Sequence[Write]
) -> tuple[tuple[Write, ...], ...]:
    """Return what is set on each way through a function; nothing if that cannot be told."""
    found = paths_of(subject.code[path], function) or ()
    own = [[write for write in way if write in shown] for way in found]
    # What other functions set on its behalf is not told apart.
    complete = {write for way in own for write in way}.issuperset(shown)
    return tuple(dict.fromkeys(map(tuple, own))) if complete else ()


def _shown(
    caller: Caller,
    shown: Sequence[Write],
    paths: Sequence[Sequence[Write]],
    variables: Mapping[str, Variable],
) -> Iterator[Event]:
    """Yield an event for each way through the code, or one for all that it might set."""
    name = shown[0].variable or ""
    doubt = Doubt(f"{caller.function} may leave {name} as it is", "let a trigger set it", name)
    ways = [_last(way, variables) for way in paths] if paths else [None]
    if not paths and len(shown) == 1:
        ways = [_last(shown, variables), ()]
    several = len(ways) > 1
    for way in ways:
        if way is None:
            every = tuple(Setting(it.variable or "", _value(it), keeps=True) for it in shown)
            yield Event(caller.when, every, doubt, stage=2)
        elif any(setting.value is UNKNOWN for setting in way):
            why = f"the code of {caller.function} works out what {name} is set to"
            yield Event(caller.when, way, replace(doubt, why=why), stage=2)
        else:
            yield Event(caller.when, way, replace(doubt, mild=True) if several else None, stage=2)
    if caller.at:
        sure = not several and ways[0] is not None
        union = tuple(Setting(it.variable or "", _value(it)) for it in shown)
        sure = sure and all(setting.value is not UNKNOWN for setting in union)
        yield Event(caller.at, union, replace(doubt, mild=not sure))


def _last(way: Sequence[Write], variables: Mapping[str, Variable]) -> tuple[Setting, ...] | None:
    """Return what is left when a way has been gone; None if a change between matters."""
    found: dict[str, Setting] = {}
    for write in way:
        name = write.variable or ""
        source = variables[name].source
        if name in found and isinstance(source, DerivedSource) and source.transitions:
            return None
        found[name] = Setting(name, _value(write))
    return tuple(found.values())


def _may_write(variable: Variable, caller: Caller) -> bool:
    writers = variable.writers
    return writers is None or caller.function in writers or caller.agent in writers


def _value(write: Write) -> Json:
    return write.value if write.constant and isinstance(write.value, _SCALARS) else UNKNOWN


def _moments(subject: Subject, writer: str) -> Iterator[When]:
    if writer in subject.agents:
        yield When("turn", writer)
    for caller in callers(subject):
        if caller.function == writer:
            yield caller.when


def _is_visible(subject: Subject, path: str, name: str) -> bool:
    """Tell whether a function's code stands in the package, here or where it is imported from."""
    modules = code_of(subject).modules
    met: set[tuple[str, str]] = set()
    while path in modules and (path, name) not in met:
        met.add((path, name))
        if name in modules[path].functions:
            return True
        definition = modules[path].definitions.get(name)
        if definition is None or definition.origin is None:
            return False
        path, name = definition.origin
    return False
