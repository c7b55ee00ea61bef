"""With which values of an argument, or of an answer, a call goes on to what it does next."""

from typing import Final

from weft.check.code_facts import code_of
from weft.check.proof.code_doubts import place_of_call
from weft.check.proof.happenings import Caller, Taken
from weft.check.proof.plain_hints import shows_types
from weft.check.proof.takings import takes, takes_others
from weft.check.subject import Subject
from weft.spec.part import JsonMap
from weft.spec.types import OptionalOf, TypeExpr

#: What an object may be asked for without ruling out that one of its keys is missing.
_OPEN: Final = frozenset({"type", "title", "description", "properties", "required", "$schema"})


def argument_taken(subject: Subject, caller: Caller, argument: str, type_: TypeExpr) -> Taken:
    """Tell with which values for a variable of this type a tool is called that takes them from it.

    A call whose arguments do not fit their hints sets the variable, but the tool does not run.
    """
    place = place_of_call(subject, caller)
    if place is None:
        return "unknown"
    file, function = place
    module = code_of(subject).modules[file]
    name, _, inside = argument.partition(".")
    found = module.functions[function].parameters
    parameter = next((one for one in found if one.name == name), None)
    if parameter is None:
        return "any" if any(one.kind == "kwargs" for one in found) else "unknown"
    if not parameter.hinted:
        return "any"
    # An argument without a value sets nothing.
    wanted = type_.of if isinstance(type_, OptionalOf) else type_
    if inside or not shows_types(module, module.bodies[function]) or not takes(parameter, wanted):
        return "unknown"
    return "any" if takes_others(parameter, wanted) else "values"


def answer_taken(schema: JsonMap | None, key: str) -> Taken:
    """Tell whether an answer may leave out what stands at a dotted path."""
    if not schema:
        return "any"
    required = schema.get("required", [])
    listed = required if isinstance(required, list) else [key.partition(".")[0]]
    free = schema.keys() <= _OPEN and key.partition(".")[0] not in listed
    return "any" if free else "values"
