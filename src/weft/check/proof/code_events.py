"""Events outside the triggers: code that sets variables, declared writers, the world at large."""

from collections.abc import Iterator, Mapping
from typing import Final

from weft.check.code_facts import code_of, path_in, writes_of
from weft.check.proof.events import Caller, Doubt, Event, Setting, When, callers
from weft.check.subject import Subject
from weft.check.variable_writes import Write
from weft.engine.conditions import UNKNOWN
from weft.findings import Json
from weft.spec.sources import DatabaseSource, DerivedSource, EntitySource, ExternalSource
from weft.spec.variables import Variable

_SCALARS: Final = (str, int, float, bool, type(None))


def written(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Event]:
    """Yield the events by which code and declared writers set one of `variables`.

    A declared writer whose code shows no write may set any value: that is the right it was given.
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
                for when in _moments(subject, writer):
                    yield Event(when, (Setting(name, UNKNOWN),))


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
        for name in allowed:
            yield Event(caller.when, (Setting(name, UNKNOWN),), doubt)
        return
    shown: list[Setting] = []
    for write in dict.fromkeys(writes_of(subject, path, caller.function)):
        if write.variable is None:
            why = f"{path} sets variables whose names are worked out at run time"
            doubt = Doubt(why, "write the names of the variables into the code as texts")
            for name in allowed:
                yield Event(caller.when, (Setting(name, UNKNOWN),), doubt)
        elif write.variable in allowed:
            shown.append(Setting(write.variable, _value(write)))
    for setting in shown:
        yield Event(caller.when, (setting,))
    if shown and caller.at:
        why = f"{caller.function} may leave {shown[0].variable} as it is"
        yield Event(caller.at, tuple(shown), Doubt(why, "let a trigger set it", shown[0].variable))


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
