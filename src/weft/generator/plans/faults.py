"""Faults: what is wrong with a part of an action plan, said so that its author can put it right."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from keyword import iskeyword
from typing import Final, Literal, TypeAlias

from pydantic import ValidationError

from weft.check.problems import find_problems
from weft.diagrams.nodes import short_label
from weft.findings import Finding, Json, Path, Place
from weft.generator.code_check.python_code import invisible_sign
from weft.generator.names import pascal_case, snake_case
from weft.generator.values import without_nulls
from weft.ids import AGENT_NAME, SNAKE_NAME
from weft.spec.plan import (
    ModuleAgentsOutput,
    PatternSelectionOutput,
    TechnicalBlueprintOutput,
    WorkflowStrategyOutput,
)

#: The longest name that every language model takes for the name of a tool.
LONGEST_NAME: Final = 64
#: The longest text of a plan: it is read by people, and stands in prompts.
LONGEST_TEXT: Final = 2_000

#: The parts of a plan that are written by an agent; the fifth is drawn from these.
PartKey: TypeAlias = Literal[
    "PatternSelection", "WorkflowStrategy", "TechnicalBlueprint", "ModuleAgents"
]
DesignOutput: TypeAlias = (
    PatternSelectionOutput | WorkflowStrategyOutput | TechnicalBlueprintOutput | ModuleAgentsOutput
)

_OUTPUTS: Final[dict[PartKey, type[DesignOutput]]] = {
    "PatternSelection": PatternSelectionOutput,
    "WorkflowStrategy": WorkflowStrategyOutput,
    "TechnicalBlueprint": TechnicalBlueprintOutput,
    "ModuleAgents": ModuleAgentsOutput,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a plan; the path begins with the key of the part to change."""

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return short_label(f"{self.path}: {self.message}{hint}", LONGEST_TEXT)


def fault_finding(fault: Fault, place: Place) -> Finding:
    """Return a fault at its place in the text that a person wrote."""
    hint = (fault.hint,) if fault.hint else ()
    return Finding("GEN007", "error", fault.message, place, hint=hint)


def read_part(key: PartKey, data: Json) -> DesignOutput | tuple[Fault, ...]:
    """Read a part of a plan, as a model replied; return the faults if its form is wrong.

    Keys that are null are as if left out: many models write those they do not need.
    """
    model = _OUTPUTS[key]
    try:
        return model.model_validate({key: without_nulls(data)})
    except ValidationError as error:
        return tuple(
            Fault(path_text(problem.path), problem.message, "; ".join(problem.hint))
            for problem in find_problems(error, model)
        )


def path_text(path: Path) -> str:
    """Write a path as people and models do: `WorkflowStrategy.modules[1].module_name`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def text_path(text: str) -> Path:
    """Return the path that a text names: the opposite of `path_text`."""
    steps = re.findall(r"[^.\[\]]+", text)
    return tuple(int(step) if step.isdigit() else step for step in steps)


def pascal(path: str, name: str) -> Iterator[Fault]:
    """Refuse a name that is not PascalCase."""
    if not AGENT_NAME.match(name):
        better = pascal_case(name, "")
        yield Fault(path, f'"{name}" is not PascalCase', _instead(better))
    yield from _short(path, name)


def snake(path: str, name: str) -> Iterator[Fault]:
    """Refuse a name that is not snake_case, or that Python does not take for a name."""
    if not SNAKE_NAME.match(name):
        yield Fault(path, f'"{name}" is not snake_case', _instead(snake_case(name, "")))
    elif iskeyword(name):
        yield Fault(path, f'"{name}" is a word of the Python language', f"write {name}_")
    yield from _short(path, name)


def _instead(name: str) -> str:
    return f"write {name}" if name else "use English letters and digits"


def _short(path: str, name: str) -> Iterator[Fault]:
    if len(name) > LONGEST_NAME:
        yield Fault(path, f"the name has {len(name)} characters", f"use at most {LONGEST_NAME}")


def text(path: str, value: str | None) -> Iterator[Fault]:
    """Refuse a text that is blank, too long or has invisible characters; None is no text."""
    if value is None:
        return
    if not value.strip():
        yield Fault(path, "the text is blank", "say what is meant")
    elif len(value) > LONGEST_TEXT:
        hint = f"use at most {LONGEST_TEXT}"
        yield Fault(path, f"the text has {len(value)} characters", hint)
    elif fault := invisible_sign(value):
        yield Fault(path, f"the text is refused: {fault}", "remove it")


def unique(what: str, names: Iterable[tuple[str, str]]) -> Iterator[Fault]:
    """Refuse a name that was given before; each comes with its path."""
    first: dict[str, str] = {}
    for path, name in names:
        known = first.setdefault(name, path)
        if known != path:
            message = f"the {what} {name} is listed twice: also at {known}"
            yield Fault(path, message, "give each another name, or remove one")


def at_most(path: str, found: int, most: int, what: str) -> Iterator[Fault]:
    """Refuse more than a plan can be read with."""
    if found > most:
        yield Fault(path, f"{found} {what} are too many", f"write at most {most}")
