"""Why it is not certain what the code of a call does: it is not shown, it may fail, and so on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias
from unicodedata import normalize

from weft.check.bindings import bound_model
from weft.check.code_facts import (
    Code,
    code_of,
    goes_out_of_sight,
    hands_out_of_sight,
    is_veiled,
    path_in,
    perhaps_reached,
    place_of,
    reached,
    takes_unseen,
    writes_of,
)
from weft.check.module_facts import Definition, Module
from weft.check.proof.code_paths import Ways, ways_through
from weft.check.proof.happenings import Caller, Doubt
from weft.check.proof.plain_hints import shows_types
from weft.check.proof.takings import takes_all
from weft.check.subject import Subject
from weft.check.values import misfit
from weft.check.variable_writes import Write
from weft.engine.conditions import UNKNOWN
from weft.engine.writes import access_error
from weft.findings import Json
from weft.spec.variables import DerivedSource

#: The file in which the code of a function stands, and its name there.
FunctionPlace: TypeAlias = tuple[str, str]

_SCALARS: Final = (str, int, float, bool, type(None))
#: By this signal a tool asks the model for another reply.
_BACK_SIGNAL: Final = "RetryModel"
#: By this one it asks a person, and is called again with the answer.
_QUESTION: Final = "Ask"


def place_of_call(subject: Subject, caller: Caller) -> FunctionPlace | None:
    """Return where the code of a call stands; None if it is not found."""
    path = path_in(caller.folder, caller.file, subject.code)
    return place_of(subject, path, caller.function) if path else None


def ways_of_call(subject: Subject, caller: Caller) -> Ways:
    """Return the ways through the code of a call."""
    place = place_of_call(subject, caller)
    if place is None:
        return Ways()
    if _is_veiled(subject, caller, place):
        return Ways()
    file, name = place
    module = code_of(subject).modules[file]
    found = ways_through(module, module.bodies[name])
    declared = subject.spec.variables
    if any(it.variable not in declared for path in found.paths or () for it in path.writes):
        return replace(found, paths=None, free=False, raises=True)  # such a write is refused
    # What else is called than a tool of an agent's choice does not get its arguments from a model.
    return found if caller.call else replace(found, free=False)


def _is_veiled(subject: Subject, caller: Caller, place: FunctionPlace) -> bool:
    """Tell whether it does not show what runs, where the function is declared or its code is."""
    path = path_in(caller.folder, caller.file, subject.code) or ""
    return is_veiled(subject, path, caller.function) or is_veiled(subject, *place)


def missing(caller: Caller) -> Doubt:
    """Say that there is no code to look at; an automatic tool may do anything then."""
    why = f"the code of {caller.function} cannot be found"
    remedy = f"add {caller.folder}/{caller.file}"
    return Doubt(why, remedy, reported=True, halts=caller.automatic)


def out_of_sight(subject: Subject, caller: Caller, place: FunctionPlace) -> Doubt | None:
    """Say why code does not show what it sets; an automatic tool may do anything else then, too."""
    file, name = place
    if _is_veiled(subject, caller, place):
        why = f"{file} does not show which code runs when {name} is called"
        remedy = "give each function one name, call it by that, and let nothing else wrap it"
        return Doubt(why, remedy, halts=caller.automatic)
    hidden = any(write.variable is None for write in writes_of(subject, file, name))
    hidden = hidden or takes_unseen(subject, file, name)
    code = code_of(subject)
    away = any(hands_out_of_sight(code, found) for found in reached(subject, file, name))
    if hidden or away or goes_out_of_sight(code, name):
        why = f"{file} sets variables in a way that does not show which"
        remedy = 'write context_variables.set("name", value) with the name as a text'
        return Doubt(why, remedy, halts=caller.automatic)
    return None


def sent_back(subject: Subject, caller: Caller, place: FunctionPlace) -> Doubt | None:
    """Say why a reply may be sent back to its agent that an automatic tool is called with."""
    if not caller.automatic:
        return None
    file, name = place
    # How a function that raises it may come to be called cannot be told for certain.
    if any(_names_signal(module, subject.code[path]) for path, module in _modules(subject)):
        why = f"{caller.function} may send a reply of {caller.agent} back ({_BACK_SIGNAL})"
        remedy = "let the types of the model's fields rule out what does not fit"
        return Doubt(why, remedy, halts=True)
    model = bound_model(subject, caller.agent or "") or ""
    module = code_of(subject).modules[file]
    plain = shows_types(module, module.bodies[name])
    if plain and takes_all(module.functions[name], subject.models.get(model, {})):
        return None
    why = f"{caller.function} does not take all that the fields of {model} allow"
    return Doubt(f"{why}, and such a reply is sent back", "let their types be the same", halts=True)


def _modules(subject: Subject) -> Iterable[tuple[str, Module]]:
    return code_of(subject).modules.items()


def _names_signal(module: Module, text: str) -> bool:
    """Tell whether a file names the signal, be it in other letters that mean the same to Python."""
    return _BACK_SIGNAL in normalize("NFKC", text) or _BACK_SIGNAL in module.strings


def broken_off(
    subject: Subject, caller: Caller, place: FunctionPlace, shown: Sequence[Write]
) -> Doubt | None:
    """Say why a call may not do all that its code shows."""
    writes = dict.fromkeys(writes_of(subject, *place))
    refused = any(_may_be_refused(subject, caller, write) for write in writes)
    if caller.automatic and (refused or _raises(subject, place)):
        why = f"{caller.function} fails where a value that it sets is refused or it raises"
        why += ", and so does the run"
        return Doubt(why, "let a trigger set it", _first(shown), halts=True)
    stopped = bool(shown) and _is_stopped(subject, place)
    if (refused and len(writes) > 1) or stopped or _hesitates(subject, place):
        return left_alone(caller, shown)
    return None


def without_result(subject: Subject, caller: Caller, name: str) -> Doubt | None:
    """Say why a call may come to no result that sets a variable; None if nothing shows that."""
    place = place_of_call(subject, caller) or ("", "")
    ways = ways_of_call(subject, caller)
    stopped = _is_veiled(subject, caller, place) or _is_stopped(subject, place)
    writes = writes_of(subject, *place)
    refused = any(_may_be_refused(subject, caller, write) for write in writes)
    if not refused and not ways.raises and not stopped:
        return None
    why = f"{caller.function} may end without the result that sets {name}"
    # What it has set where it declines does not come along with a result.
    mild = ways.free and not refused and not ways.declines and not stopped
    return Doubt(why, "let the call set it", name, mild=mild)


def left_alone(caller: Caller, shown: Sequence[Write]) -> Doubt:
    """Say that a call may not set what it could."""
    name = _first(shown)
    return Doubt(f"{caller.function} may leave {name} as it is", "let a trigger set it", name)


def _first(shown: Sequence[Write]) -> str | None:
    return shown[0].variable if shown else None


def _may_be_refused(subject: Subject, caller: Caller, write: Write) -> bool:
    """Tell whether a call may break off at a write."""
    variable = subject.spec.variables.get(write.variable or "")
    if variable is None:
        return False
    if not may_write(subject, caller, write.variable or ""):
        return True
    source = variable.source
    if isinstance(source, DerivedSource) and source.transitions:
        return True
    value = value_of(write)
    if value is UNKNOWN or value is None:
        return False
    return misfit(variable.type, value, subject.models) is not None


def _hesitates(subject: Subject, place: FunctionPlace) -> bool:
    """Tell whether code may set a variable only if it has no value yet."""
    return any("setdefault" in found.mentions for found in reached(subject, *place))


def _raises(subject: Subject, place: FunctionPlace) -> bool:
    """Tell whether code, or what it may use, raises anything but a question."""
    code = code_of(subject)
    return any(_does_raise(code, found) for found in perhaps_reached(subject, *place))


def _is_stopped(subject: Subject, place: FunctionPlace) -> bool:
    """Tell whether code that a function uses may raise something: how far it gets is not shown."""
    file, name = place
    module = code_of(subject).modules.get(file)
    own = module.definitions.get(name) if module else None
    used = reached(subject, *place)
    return any(_does_raise(code_of(subject), found) for found in used if found is not own)


def _does_raise(code: Code, found: Definition) -> bool:
    """Tell whether a piece of code raises anything but a question."""
    module = code.modules[found.file]
    return any(module.means(name) != _QUESTION for name in found.raised)


def sets_alone(subject: Subject, place: FunctionPlace) -> bool:
    """Tell whether a function itself does all that is set when it is called, and once."""
    file, name = place
    own = code_of(subject).modules[file].definitions[name]
    others = (found for found in reached(subject, *place) if found is not own)
    return name not in own.mentions and not any(found.writes for found in others)


def may_write(subject: Subject, caller: Caller, name: str) -> bool:
    """Tell whether a call has the right to set a variable."""
    writers = (caller.function, *([caller.agent] if caller.agent else []))
    return access_error(subject.spec.variables, name, writers) is None


def value_of(write: Write) -> Json:
    """Return what is set, or UNKNOWN if the code works it out."""
    return write.value if write.constant and isinstance(write.value, _SCALARS) else UNKNOWN
