"""References to code: every `module:name` of a spec that names a function, a class or an object."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from weft.check.parts import placed_parts, values_of
from weft.check.subject import Subject
from weft.findings import Path
from weft.ids import FUNCTION_REF, OBJECT_REF
from weft.spec.board import BestOf, Component, FunctionEngine, Join, Publication, Subscription
from weft.spec.flow import AgentWork, Flow, FunctionWork, StepContext
from weft.spec.orchestrator import ParallelGroup, RuntimeExtension
from weft.spec.part import Part
from weft.spec.providers import CustomProvider, RedactingProvider
from weft.spec.triggers import FunctionTrigger
from weft.spec.variables import ComputedSource
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class CodeReference:
    """A `module:function` in the spec, and who names it.

    `given` are the arguments it is called with by name; None if they are not checked.
    """

    path: Path
    reference: str
    what: str
    given: Collection[str] | None


#: Where functions and classes are named: the kind of part, the field, and what they are called.
_NAMED: Final[Mapping[str, tuple[tuple[type[Part], str, str], ...]]] = {
    "orchestrator": (
        (RuntimeExtension, "entrypoint", "the {RuntimeExtension.kind} {name}"),
        (ParallelGroup, "function", "{name} of group {ParallelGroup.name}"),
    ),
    "variables": (
        (ComputedSource, "computation", "{name}, which computes {key},"),
        (FunctionTrigger, "function", "{name}, a trigger of {key},"),
    ),
    "board": (
        (Component, "component", "{name}"),
        (FunctionEngine, "function", "{name}"),
        (BestOf, "score", "{name}"),
        (Subscription, "where", "{name}"),
        (Join, "function", "{name}"),
        (Publication, "where", "{name}"),
        (Publication, "validate_", "{name}"),
        (Publication, "visibility", "{name}"),
        (CustomProvider, "provider", "{name}"),
        (RedactingProvider, "transform", "{name}"),
    ),
    "flow": (
        (Flow, "state", "{name}"),
        (FunctionWork, "function", "{name}"),
        (AgentWork, "step", "{name}"),
        (StepContext, "assembler", "{name}"),
    ),
}
REFERENCES: Final = tuple(_NAMED)
#: Boards and flows may also name what is installed, or what only a program has.
OBJECTS: Final = ("board", "flow")
#: The parameters of the function of a trigger, beside the variables.
_GIVEN_TO_TRIGGERS: Final = ("values", "agent", "message", "messages", "content")


def code_references(root: str, subject: Subject) -> Iterator[CodeReference]:
    """Yield every `module:name` in one part of the spec."""
    pattern = OBJECT_REF if root in OBJECTS else FUNCTION_REF
    for kind, field, what in _NAMED[root]:
        for placed in placed_parts(subject, kind):
            for path, value in values_of(placed, field):
                held = getattr(placed.part, field)
                name = cast("dict[object, str]", held)[value] if isinstance(held, dict) else value
                if isinstance(name, str) and pattern.match(name):
                    said = placed.describe(what, name=name)
                    yield CodeReference(path, name, said, _argument_names(subject, placed.part))


def _argument_names(subject: Subject, part: Part) -> Collection[str] | None:
    """Return the names of the arguments that a function gets; None if they are not checked."""
    if isinstance(part, ComputedSource):
        return part.inputs
    if isinstance(part, FunctionTrigger):
        return (*subject.spec.variables, *_GIVEN_TO_TRIGGERS)
    return None


def object_names(spec: WorkflowSpec) -> frozenset[str]:
    """Return the names of all objects in code that the board or the flow of a spec refers to."""
    subject = Subject(spec)
    return frozenset(
        found.reference for root in OBJECTS for found in code_references(root, subject)
    )
