"""Parts of boards as a program writes them: types, joins, batches, engines."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar
from weakref import WeakSet

from pydantic import BaseModel, ValidationError

from weft.catalogue import CATALOGUE
from weft.dsl.objects import LocalObjects, importable_name
from weft.errors import CheckFailed, UsageError
from weft.findings import Finding, Place
from weft.ids import nearest
from weft.spec import board as spec
from weft.spec.part import Part
from weft.spec.tools import INSTALLED, AgentTool

PartT = TypeVar("PartT", bound=Part)


def refusal(code: str, fact: str, *hint: str, of: object = None) -> CheckFailed:
    """Return the error for one mistake; `of` is the function that it was made in."""
    written = getattr(of, "__code__", None)
    place = Place(written.co_filename, written.co_firstlineno) if written else Place("the flow")
    return failed(fact, [Finding(code, CATALOGUE[code].severity, fact, place, hint=hint)])


def failed(message: str, findings: Iterable[Finding]) -> CheckFailed:
    """Return an error that shows all findings, in a traceback too."""
    found = tuple(findings)
    error = CheckFailed(message, found)
    for it in found:
        hint = f" ({'; '.join(it.hint)})" if it.hint else ""
        error.add_note(f"{it.place}: {it.code} {it.message}{hint}")
    return error


def made(part: type[PartT], **fields: Any) -> PartT:  # noqa: ANN401 - the fields of the part
    """Return a part of the spec, or refuse a value of a kind that it cannot have."""
    try:
        return part(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(it) for it in first["loc"])
        fact = f"{part.__name__}: {place} cannot be {first['input']!r}: {first['msg']}"
        raise refusal("FLOW034", fact) from error


def require_function(it: object, what: str, example: str) -> Callable[..., Any]:
    """Return what is called with a builder, or refuse something else."""
    if not callable(it) or isinstance(it, type):
        raise refusal("FLOW034", f"{what} is a function, not {it!r}", f"write {example}")
    return it


ModelT = TypeVar("ModelT", bound=type[BaseModel])

#: Set on classes that may be published although no agent of the board names them.
ARTIFACT_MARK: Final = "__weft_artifact__"


def artifact(model: ModelT) -> ModelT:
    """Mark a class as a type of artifacts: it may be published on every board."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"{model!r} cannot be a type of artifacts",
            hint="decorate a class of pydantic.BaseModel",
        )
    setattr(model, ARTIFACT_MARK, True)
    _REGISTERED.add(model)
    return model


#: Every class that is marked as a type of artifacts, for as long as there is the class.
_REGISTERED: Final[WeakSet[type[BaseModel]]] = WeakSet()


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """Artifacts that belong together by a key: a field, one for each type, or a function.

    `within` is how long the others may take to come, or how many may come in between.
    """

    by: str | Mapping[str, str] | Callable[..., Any]
    within: timedelta | int | None = None


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """Artifacts that are handled together: so many, or those of some time."""

    size: int | None = None
    timeout: timedelta | float | None = None


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """The agent's language model works out what is published."""

    model: str | None = None
    instructions: str = ""
    context_provider: Any = None


@dataclass(frozen=True, slots=True)
class FunctionEngine:
    """A function `(inputs)` or `(inputs, ctx)` works out what is published."""

    function: Callable[..., Any]
    context_provider: Any = None


class TypeNames:
    """The types of a board by their names: that of the class, qualified only if two share it."""

    def __init__(self) -> None:
        self._classes: list[type[BaseModel]] = []

    def add(self, model: type[BaseModel]) -> None:
        """Let a class be a type of the board."""
        if not (isinstance(model, type) and issubclass(model, BaseModel)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"{model!r} cannot be a type of artifacts", hint="use a class of pydantic.BaseModel"
            )
        if model not in self._classes:
            self._classes.append(model)

    def add_registered(self, name: str) -> None:
        """Let the class marked with @artifact that has a name be a type, if it is the only one."""
        if any(name in (class_.__name__, qualified_name(class_)) for class_ in self._classes):
            return
        found = [it for it in _REGISTERED if name in (it.__name__, qualified_name(it))]
        if len(found) == 1:
            self.add(found[0])

    def name(self, model: type[BaseModel]) -> str:
        """Return what a class is called on the board."""
        alike = [class_ for class_ in self._classes if class_.__name__ == model.__name__]
        return model.__name__ if len(alike) < 2 else qualified_name(model)

    @property
    def counts(self) -> tuple[int, int]:
        """How many classes it has, and how many are marked with @artifact."""
        return len(self._classes), len(_REGISTERED)

    def __contains__(self, model: type[BaseModel]) -> bool:
        return model in self._classes

    def declared(self) -> list[spec.ArtifactType]:
        """Return the types as the spec has them."""
        return [
            spec.ArtifactType(
                name=self.name(class_),
                description=(class_.__doc__ or "").strip()
                if class_.__doc__ != BaseModel.__doc__
                else "",
                schema=class_.model_json_schema(),
            )
            for class_ in self._classes
        ]

    def resolve(self, name: str) -> str:
        """Return the type a name means. Raises UsageError if there is none, or several."""
        self.add_registered(name)
        names = {self.name(class_): class_ for class_ in self._classes}
        if name in names:
            return name
        alike = sorted(full for full, it in names.items() if it.__name__ == name)
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
    """Return the name of a class that no other has."""
    return f"{model.__module__}.{model.__qualname__}".replace(".<locals>", "")


def valid(part: type[PartT], **fields: Any) -> PartT:  # noqa: ANN401 - the fields of the part
    """Return a part of the spec. Raises UsageError in our words if a value does not fit."""
    try:
        return part(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(it) for it in first["loc"])
        raise UsageError(f"{part.__name__}: {place}: {first['msg']}") from error


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
    """Tell whether something can be called with so many arguments; what is unknown may be."""
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:
        return True  # a function of C that does not say
    except TypeError:
        return False
    return True
