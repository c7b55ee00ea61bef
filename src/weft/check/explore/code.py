"""What code may set: it counts as possible, and as nothing more than that."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.check.code.facts import path_in, reached
from weft.check.code.writes import Write
from weft.check.explore.happenings import RUNS, Caller, Happening, Setting, When, callers
from weft.check.subject import Subject
from weft.engine.conditions import UNKNOWN
from weft.engine.writes import access_error
from weft.findings import Json
from weft.spec.sources import DatabaseSource, DerivedSource, EntitySource, ExternalSource, Source
from weft.spec.variables import Variable

_SCALARS: Final = (str, int, float, bool, type(None))


def written(subject: Subject, variables: Mapping[str, Variable]) -> Iterator[Happening]:
    """Yield the happenings by which code, declared writers and the world may set `variables`."""
    writable = [
        name
        for name, variable in variables.items()
        if isinstance(variable.source, DerivedSource | EntitySource)
    ]
    shown: set[tuple[str | None, str]] = set()
    for caller in callers(subject):
        settings = tuple(_settings(subject, caller, writable))
        if settings:
            shown |= {(caller.agent, setting.variable) for setting in settings}
            why = f"the code of {caller.function} may set {settings[0].variable}, or leave it"
            yield Happening(caller.when, settings, why, stage=RUNS, call=caller.call)
    for name, variable in variables.items():
        for writer in variable.writers or ():
            if writer in subject.agents and (writer, name) not in shown:
                why = f"{writer} may set {name}, or leave it"
                yield Happening(When("turn", writer), (_any(name),), why)
        if _is_read_anew(variable.source):
            yield Happening(When("any"), (_any(name),), f"{name} may change outside the run")


def _is_read_anew(source: Source) -> bool:
    """Tell whether a value may be another one than at the start, or than declared, by itself."""
    match source:
        case DatabaseSource(refresh_strategy=strategy):
            return strategy != "once"
        case DerivedSource(persist=kept):
            return kept
        case _:
            return isinstance(source, ExternalSource)


def _settings(subject: Subject, caller: Caller, writable: Sequence[str]) -> Iterator[Setting]:
    """Yield what a call may set: what its code names, or all it has a right to if none is found."""
    path = path_in(caller.folder, caller.file, subject.code) or ""
    used = reached(subject, path, caller.function)
    writes = {write: None for one in used for write in one.writes} if used else {Write(None): None}
    writers = (caller.function, *([caller.agent] if caller.agent else []))
    for name in writable:
        if access_error(subject.spec.variables, name, writers) is None:
            values = [_value(write) for write in writes if write.variable == name]
            declared = caller.function in (subject.spec.variables[name].writers or ())
            if Write(None) in writes or (declared and not values):
                values.append(UNKNOWN)
            yield from (Setting(name, value, keeps=True) for value in values)


def _value(write: Write) -> Json:
    """Return what is set, or UNKNOWN if the code works it out."""
    return write.value if write.constant and isinstance(write.value, _SCALARS) else UNKNOWN


def _any(name: str) -> Setting:
    return Setting(name, UNKNOWN, keeps=True)
