"""Parts of boards in code: types, joins, batches, engines."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar, cast
from weakref import WeakSet

from pydantic import BaseModel, ValidationError

from weft.catalogue import CATALOGUE
from weft.check.problems import find_problems, path_text
from weft.dsl.objects import LocalObjects, importable_name
from weft.errors import CheckFailed, UsageError
from weft.findings import Finding, Place
from weft.ids import nearest
from weft.spec import board as spec
from weft.spec.part import Part
from weft.spec.tools import INSTALLED, AgentTool

PartT = TypeVar("PartT", bound=Part)

#: Where a word begins in the name of a class, except the first.
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def refusal(code: str, fact: str, *hint: str, of: object = None) -> CheckFailed:
    """Return the error for one mistake; `of` is the function that contains it."""
    written = getattr(of, "__code__", None)
    place = Place(written.co_filename, written.co_firstlineno) if written else Place("the flow")
    return failed(fact, [Finding(code, CATALOGUE[code].severity, fact, place, hint=hint)])


def failed(message: str, findings: Iterable[Finding]) -> CheckFailed:
    """Return an error that shows all findings, also in a traceback."""
    found = tuple(findings)
    error = CheckFailed(message, found)
    for finding in found:
        hint = f" ({'; '.join(finding.hint)})" if finding.hint else ""
        error.add_note(f"{finding.place}: {finding.code} {finding.message}{hint}")
    return error


def flow_part(part: type[PartT], **fields: Any) -> PartT:  # noqa: ANN401 - the fields of the part
    """Return a part of the spec, or refuse an invalid value."""
    try:
        return part(**fields)
    except ValidationError as error:
        fact, hint = _first_problem(part, error)
        raise refusal("FLOW034", fact, *hint) from error


def _first_problem(part: type[Part], error: ValidationError) -> tuple[str, tuple[str, ...]]:
    """Return what is wrong with a part, in the words of the checker, and what to do."""
    problem = next(find_problems(error, part))
    name = _CAPITAL.sub(" ", part.__name__).lower()
    place = ": ".join(filter(None, (name, path_text(problem.path))))
    return f"{place}: {problem.message}", problem.hint


def require_function(value: object, what: str, example: str) -> Callable[..., Any]:
    """Return a function that takes a builder, or refuse another value."""
    if not callable(value) or isinstance(value, type):
        raise refusal("FLOW034", f"{what} is a function, not {value!r}", f"write {example}")
    return value


ModelT = TypeVar("ModelT", bound=type[BaseModel])

#: Marks classes that can be published although no agent of the board names them.
ARTIFACT_MARK: Final = "__weft_artifact__"


def artifact(model: ModelT) -> ModelT:
    """Mark a class as an artifact type that can be published on every board."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"{model!r} cannot be a type of artifacts",
            hint="decorate a class of pydantic.BaseModel",
        )
    setattr(model, ARTIFACT_MARK, True)
    REGISTERED.add(model)
    return model


#: The classes marked as artifact types, as weak references.
REGISTERED: Final[WeakSet[type[BaseModel]]] = WeakSet()


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A join of artifacts by a key: a field, one field per type, or a function.

    `within` is the longest wait for the others, or the most artifacts in between.
    """

    by: str | Mapping[str, str] | Callable[..., Any]
    within: timedelta | int | None = None


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """A batch of artifacts, limited by number or time."""

    size: int | None = None
    timeout: timedelta | float | None = None


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """The agent's language model produces the artifacts."""

    model: str | None = None
    instructions: str = ""
    context_provider: Any = None


@dataclass(frozen=True, slots=True)
class FunctionEngine:
    """A function `(inputs)` or `(inputs, ctx)` produces the artifacts."""

    function: Callable[..., Any]
    context_provider: Any = None


class TypeNames(dict[type[BaseModel], str]):
    """The types of a board and their names: the class name, qualified if two classes share it."""

    def add(self, model: type[BaseModel]) -> None:
        """Register a class as a type of the board."""
        if not (isinstance(model, type) and issubclass(model, BaseModel)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"{model!r} cannot be a type of artifacts", hint="use a class of pydantic.BaseModel"
            )
        if model not in self:
            self[model] = model.__name__
            alike = [class_ for class_ in self if class_.__name__ == model.__name__]
            if len(alike) > 1:
                self.update((class_, qualified_name(class_)) for class_ in alike)

    def add_registered(self, name: str) -> None:
        """Register the class marked with @artifact that has this name, if it is the only one."""
        if any(name in (class_.__name__, qualified_name(class_)) for class_ in self):
            return
        found = [kind for kind in REGISTERED if name in (kind.__name__, qualified_name(kind))]
        if len(found) == 1:
            self.add(found[0])

    def declared(self) -> list[spec.ArtifactType]:
        """Return the types in their spec form."""
        return [
            spec.ArtifactType(
                name=name,
                description=(class_.__doc__ or "").strip()
                if class_.__doc__ != BaseModel.__doc__
                else "",
                schema=class_.model_json_schema(),
            )
            for class_, name in self.items()
        ]

    def resolve(self, name: str) -> str:
        """Return the type a name means. Raises UsageError if there is none, or several."""
        self.add_registered(name)
        names = {known: class_ for class_, known in self.items()}
        if name in names:
            return name
        alike = sorted(full for full, kind in names.items() if kind.__name__ == name)
        if len(alike) > 1:
            raise UsageError(
                f"several types are called {name}: {', '.join(alike)}", hint="give the whole name"
            )
        near = nearest(name, names)
        known = ", ".join(sorted(names)) or "none"
        raise UsageError(
            f"the board has no artifacts of the type {name}",
            hint=f"did you mean {near}?" if near else f"the board has: {known}",
        )


def qualified_name(model: type) -> str:
    """Return the qualified name of a class."""
    return f"{model.__module__}.{model.__qualname__}".replace(".<locals>", "")


def board_part(part: type[PartT], **fields: Any) -> PartT:  # noqa: ANN401 - the fields of the part
    """Return a part of the spec. Raises UsageError if a value is invalid."""
    try:
        return part(**fields)
    except ValidationError as error:
        fact, hint = _first_problem(part, error)
        raise UsageError(fact, hint="; ".join(hint) or None) from error


def tool_functions(agent: str, tools: object) -> list[Callable[..., Any]]:
    """Return the functions that the model of an agent can call, or refuse other values."""
    hint = "give a list of functions that have names: tools=[search]"
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise UsageError(f"the tools of {agent} are {tools!r}, not a list", hint=hint)
    functions = list(cast("Iterable[Any]", tools))
    for function in functions:
        if not callable(function) or not getattr(function, "__name__", "").isidentifier():
            fact = f"the tool {function!r} of {agent} is not a function with a name"
            raise UsageError(fact, hint=hint)
    return functions


def tool_of(objects: LocalObjects, agent: str, function: Callable[..., Any]) -> AgentTool:
    """Return a function as a tool of an agent."""
    module = (importable_name(function) or "").rpartition(":")[0]
    at_home = module and function.__qualname__ == function.__name__
    file = f"{INSTALLED}{module}" if at_home else objects.name(function, agent)
    return AgentTool(agent=agent, file=file, function=function.__name__)


def seconds(span: timedelta | float) -> float:
    """Return a time in seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether an object accepts so many arguments; assumed if its signature is unknown."""
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:
        return True  # a C function without a signature
    except TypeError:
        return False
    return True
