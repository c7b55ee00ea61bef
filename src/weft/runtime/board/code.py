"""The code of a board: providers, engines, components and functions, found once for all runs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_type_hints

from pydantic import BaseModel

from weft.context.slices import ContextProvider
from weft.errors import UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.runtime.linked_objects import ObjectMaker, unusable
from weft.runtime.tools.forms import Validator, first_error, validator_for
from weft.spec.board import TICK, Board, Component, FunctionEngine, HookName
from weft.spec.providers import (
    CustomProvider,
    DefaultCorrelationProvider,
    Provider,
    RedactingProvider,
    with_inner,
)
from weft.spec.tools import LOCAL
from weft.spec.type_meaning import json_schema
from weft.spec.types import Ref
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class LinkedHook:
    """A hook of a component."""

    name: str
    call: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class BoardCode:
    """The linked code of a board."""

    objects: Mapping[str, Any]
    #: The context providers of agents, of their fallbacks, of single engines and subscriptions.
    contexts: Mapping[str, ContextProvider]
    fallbacks: Mapping[str, ContextProvider]
    engine_contexts: Mapping[tuple[str, int], ContextProvider]
    subscription_contexts: Mapping[str, ContextProvider]
    #: By agent and hook, the highest priority first.
    hooks: Mapping[tuple[str, str], tuple[LinkedHook, ...]]
    #: Engine functions by agent and index; `alone` are those that take no context.
    engines: Mapping[tuple[str, int], Callable[..., Any]]
    alone: frozenset[tuple[str, int]] = frozenset()

    def hooks_of(self, agent: str, name: HookName) -> tuple[LinkedHook, ...]:
        return self.hooks.get((agent, name), ())


NO_BOARD: Final = BoardCode({}, {}, {}, {}, {}, {}, {})


def link_board(board: Board, objects: Mapping[str, Any], local: Mapping[str, object]) -> BoardCode:
    """Return the code of a board; raises LinkError that names unusable code."""
    made = _Maker(objects, local)
    usual = DefaultCorrelationProvider()
    contexts = {agent.agent: made.provider(agent.context or usual) for agent in board.agents}
    engines = {
        (agent.agent, index): made.engine(engine)
        for agent in board.agents
        for index, engine in enumerate(agent.engines)
        if isinstance(engine, FunctionEngine)
    }
    return BoardCode(
        objects=objects,
        contexts=contexts,
        fallbacks={
            agent.agent: made.provider(agent.fallback) for agent in board.agents if agent.fallback
        },
        engine_contexts={
            (agent.agent, index): made.provider(engine.context)
            for agent in board.agents
            for index, engine in enumerate(agent.engines)
            if engine.context
        },
        subscription_contexts={
            f"{agent.agent}.{index}": made.provider(subscription.context)
            for agent in board.agents
            for index, subscription in enumerate(agent.consumes)
            if subscription.context
        },
        hooks=_hooks(board, made),
        engines=engines,
        alone=frozenset(key for key, engine in engines.items() if takes_one(engine)),
    )


class _Maker(ObjectMaker):
    """Creates the objects that a board declares."""

    def engine(self, engine: FunctionEngine) -> Callable[..., Any]:
        made = self.instance(engine.function, engine.options)
        return cast("Callable[..., Any]", made)

    def provider(self, spec: Provider) -> ContextProvider:
        if isinstance(spec, CustomProvider):
            return self.instance(spec.provider, spec.options)
        made = with_inner(spec, self.provider)
        if isinstance(made, RedactingProvider):
            functions = {key: self.objects[name] for key, name in made.transform.items()}
            made = made.model_copy(update={"transform": functions})
        return cast("ContextProvider", made)


def _hooks(board: Board, made: _Maker) -> dict[tuple[str, str], tuple[LinkedHook, ...]]:
    found: dict[tuple[str, str], list[tuple[int, LinkedHook]]] = {}
    for agent in board.agents:
        for component in (*agent.components, *board.components):
            instance = made.instance(component.component, component.options)
            for hook in component.hooks:
                linked = LinkedHook(
                    f"{_component_name(component, instance)}.{hook}",
                    _hook(component, instance, hook),
                )
                found.setdefault((agent.agent, hook), []).append((component.priority, linked))
    for component in board.components:  # Artifacts from outside have no agent.
        instance = made.instance(component.component, component.options)
        if "artifact_published" in component.hooks:
            name = f"{_component_name(component, instance)}.artifact_published"
            linked = LinkedHook(name, _hook(component, instance, "artifact_published"))
            found.setdefault(("", "artifact_published"), []).append((component.priority, linked))
    return {
        key: tuple(hook for _, hook in sorted(hooks, key=lambda pair: -pair[0]))
        for key, hooks in found.items()
    }


def _hook(component: Component, instance: object, hook: str) -> Callable[..., Any]:
    found = getattr(instance, hook, None)
    if callable(found):
        return found
    hint = f"define {hook} there, or take it out of its hooks"
    raise unusable(component.component, f"has no method {hook}", hint)


def _component_name(component: Component, instance: object) -> str:
    """Return the name of a component for messages."""
    is_local = component.component.startswith(LOCAL)
    return type(instance).__name__ if is_local else component.component.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """The artifact types of a board, by name, as JSON Schemas."""

    schemas: Mapping[str, dict[str, Any]]
    validators: Mapping[str, Validator]

    def validation_error(self, type_: str, payload: Json) -> str | None:
        """Return the first validation error of a payload with its place, or None."""
        return first_error(self.validators[type_](payload))

    def require(self, type_: str) -> None:
        """Raise UsageError if there is no such type."""
        if type_ not in self.schemas:
            near = nearest(type_, self.schemas)
            known = ", ".join(sorted(self.schemas)) or "none"
            hint = f"did you mean {near}?" if near else f"the board has: {known}"
            raise UsageError(f"the board has no artifacts of the type {type_}", hint=hint)


NO_TYPES: Final = ArtifactTypes({}, {})


def artifact_types(spec: WorkflowSpec, board: Board) -> ArtifactTypes:
    """Return the artifact types of a board."""
    models = {model.name: {f: e.type for f, e in model.fields.items()} for model in spec.models}
    schemas: dict[str, dict[str, Any]] = {}
    for artifact in board.artifacts:
        if isinstance(artifact, str):
            schemas[artifact] = json_schema(Ref(artifact), models)
        else:
            schemas[artifact.name] = dict(artifact.schema_)
    schemas.setdefault(TICK, {"type": "object"})
    return ArtifactTypes(schemas, {name: validator_for(schema) for name, schema in schemas.items()})


class Payload(dict[str, Any]):
    """A payload for user code: fields can be read as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a field
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the payload has no field {name}") from None


def payload_for(function: Callable[..., Any], payload: object) -> object:
    """Return a payload as the class that a function's annotation names, or as a Payload."""
    hint = _first_hint(function)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint.model_validate(payload)
    return Payload(cast("dict[str, Any]", payload)) if isinstance(payload, dict) else payload


def _first_hint(function: Callable[..., Any]) -> object:
    try:
        hints = get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters), "")
    except (NameError, TypeError, ValueError):
        return None
    return hints.get(first)


def takes_one(function: Callable[..., Any]) -> bool:
    """Return whether a function takes its inputs only, and no context."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    plain = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(plain) == 1
