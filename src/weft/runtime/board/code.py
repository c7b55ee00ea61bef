"""The code of a board: providers, engines, components and functions, found once for all runs."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_type_hints

from pydantic import BaseModel

from weft.context import providers
from weft.context.providers import SemanticContextProvider, nesting_error
from weft.context.slices import ContextProvider
from weft.errors import LinkError, UsageError
from weft.findings import Json
from weft.ids import OBJECT_REF, nearest
from weft.ports.tools import ToolLoader
from weft.runtime.linked_objects import ObjectMaker, find_objects, unusable
from weft.runtime.tools.forms import Validator, first_error, validator_for
from weft.spec.board import TICK, Board, BoardAgent, Component, FunctionEngine, HookName
from weft.spec.providers import (
    CompositeProvider,
    CorrelatedProvider,
    CustomProvider,
    EmptyProvider,
    FilteredProvider,
    Provider,
    RecentProvider,
    RedactingProvider,
    SemanticProvider,
    StateProvider,
    SummaryProvider,
    WindowProvider,
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
    """Everything of a board that is code, ready to be called."""

    objects: Mapping[str, Any]
    #: By agent: the providers of its engines (None: the agent's own), its own, and its fallback.
    contexts: Mapping[str, ContextProvider]
    fallbacks: Mapping[str, ContextProvider]
    engine_contexts: Mapping[tuple[str, int], ContextProvider]
    subscription_contexts: Mapping[str, ContextProvider]
    #: By agent and hook, the most urgent first.
    hooks: Mapping[tuple[str, str], tuple[LinkedHook, ...]]
    #: By agent and engine: what evaluates, and which take what they work on alone.
    engines: Mapping[tuple[str, int], Callable[..., Any]]
    alone: frozenset[tuple[str, int]] = frozenset()

    def hooks_of(self, agent: str, *names: HookName) -> tuple[LinkedHook, ...]:
        return tuple(hook for name in names for hook in self.hooks.get((agent, name), ()))


def link_board(
    board: Board, digest: str, loader: ToolLoader, local: Mapping[str, object]
) -> BoardCode:
    """Find all code of a board. Raises LinkError naming what is missing."""
    objects = find_objects(_references(board), digest, loader, local)
    made = _Maker(objects, local)
    contexts = {it.agent: made.provider(it.context or CorrelatedProvider()) for it in board.agents}
    engines = {
        (agent.agent, index): made.engine(it)
        for agent in board.agents
        for index, it in enumerate(agent.engines)
        if isinstance(it, FunctionEngine)
    }
    return BoardCode(
        objects=objects,
        contexts=contexts,
        fallbacks={it.agent: made.provider(it.fallback) for it in board.agents if it.fallback},
        engine_contexts={
            (agent.agent, index): made.provider(it.context)
            for agent in board.agents
            for index, it in enumerate(agent.engines)
            if it.context
        },
        subscription_contexts={
            f"{agent.agent}.{index}": made.provider(it.context)
            for agent in board.agents
            for index, it in enumerate(agent.consumes)
            if it.context
        },
        hooks=_hooks(board, made),
        engines=engines,
        alone=frozenset(key for key, it in engines.items() if takes_one(it)),
    )


class _Maker(ObjectMaker):
    """Makes the objects of a board from what is declared."""

    def engine(self, engine: FunctionEngine) -> Callable[..., Any]:
        made = self.instance(engine.function, engine.options)
        return cast("Callable[..., Any]", made)

    def provider(self, spec: Provider) -> ContextProvider:
        made = self._provider(spec)
        fault = nesting_error(made)
        if fault:
            raise LinkError(f"a provider cannot be used: {fault}")
        return made

    def _provider(self, spec: Provider) -> ContextProvider:  # noqa: PLR0911 - one for each kind
        match spec:
            case CorrelatedProvider(limit=limit):
                return providers.DefaultCorrelationProvider(limit)
            case FilteredProvider(filters=filters, limit=limit, include_state_keys=keys):
                return providers.FilteredContextProvider(filters, limit, keys)
            case RecentProvider(limit=limit):
                return providers.RecentProvider(limit)
            case WindowProvider(seconds=seconds, limit=limit):
                return providers.TimeWindowProvider(seconds, limit)
            case SemanticProvider():
                return SemanticContextProvider(
                    spec.query, spec.query_field, spec.limit, spec.threshold, spec.filters
                )
            case StateProvider(key=key):
                return providers.StateDelegatingProvider(key)
            case CompositeProvider(providers=inner, parallel=parallel, limit=limit):
                several = map(self._provider, inner)
                return providers.CompositeProvider(*several, parallel=parallel, limit=limit)
            case RedactingProvider(provider=inner, drop=drop, transform=transform):
                functions = {key: self.objects[name] for key, name in transform.items()}
                return providers.RedactingProvider(
                    self._provider(inner), drop=drop, transform=functions
                )
            case SummaryProvider(provider=inner, templates=templates):
                return providers.SummarisingProvider(self._provider(inner), templates)
            case EmptyProvider():
                return providers.EmptyProvider()
            case CustomProvider(provider=name, options=options):
                return self.instance(name, options)


def _hooks(board: Board, made: _Maker) -> dict[tuple[str, str], tuple[LinkedHook, ...]]:
    found: dict[tuple[str, str], list[tuple[int, LinkedHook]]] = {}
    for agent in board.agents:
        for component in (*agent.components, *board.components):
            it = made.instance(component.component, component.options)
            for hook in component.hooks:
                linked = LinkedHook(
                    f"{_component_name(component, it)}.{hook}", _hook(component, it, hook)
                )
                found.setdefault((agent.agent, hook), []).append((component.priority, linked))
    for component in board.components:  # Artifacts from outside have no agent.
        it = made.instance(component.component, component.options)
        if "artifact_published" in component.hooks:
            name = f"{_component_name(component, it)}.artifact_published"
            linked = LinkedHook(name, _hook(component, it, "artifact_published"))
            found.setdefault(("", "artifact_published"), []).append((component.priority, linked))
    return {
        key: tuple(hook for _, hook in sorted(hooks, key=lambda it: -it[0]))
        for key, hooks in found.items()
    }


def _hook(component: Component, it: object, hook: str) -> Callable[..., Any]:
    found = getattr(it, hook, None)
    if callable(found):
        return found
    hint = f"define {hook} there, or take it out of its hooks"
    raise unusable(component.component, f"has no hook {hook}", hint)


def _component_name(component: Component, it: object) -> str:
    """Return what an author calls a component, for messages."""
    is_local = component.component.startswith(LOCAL)
    return type(it).__name__ if is_local else component.component.rpartition(":")[2]


def _references(board: Board) -> Iterator[str]:
    """Yield everything in code that a board refers to."""
    for component in board.components:
        yield component.component
    for agent in board.agents:
        yield from _agent_references(agent)


def _agent_references(agent: BoardAgent) -> Iterator[str]:
    yield from (component.component for component in agent.components)
    yield from (engine.function for engine in agent.engines if isinstance(engine, FunctionEngine))
    if agent.best_of:
        yield agent.best_of.score
    for publication in agent.publishes:
        tests = (publication.where, publication.validate_, publication.visibility)
        yield from (test for test in tests if isinstance(test, str) and OBJECT_REF.match(test))
    for subscription in agent.consumes:
        if subscription.where and OBJECT_REF.match(subscription.where):
            yield subscription.where
        if subscription.join and subscription.join.function:
            yield subscription.join.function
    contexts = [agent.context, agent.fallback, *(engine.context for engine in agent.engines)]
    for context in (*contexts, *(consume.context for consume in agent.consumes)):
        if context is not None:
            yield from _provider_references(context)


def _provider_references(provider: Provider) -> Iterator[str]:
    match provider:
        case CustomProvider(provider=name):
            yield name
        case CompositeProvider(providers=inner):
            for it in inner:
                yield from _provider_references(it)
        case RedactingProvider(provider=inner, transform=transform):
            yield from transform.values()
            yield from _provider_references(inner)
        case SummaryProvider(provider=inner):
            yield from _provider_references(inner)
        case _:
            pass


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """The types that may be published, by name, as JSON Schemas."""

    schemas: Mapping[str, dict[str, Any]]
    validators: Mapping[str, Validator]

    def validation_error(self, type_: str, payload: Json) -> str | None:
        """Say what does not fit in a payload, and where, or None."""
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
    """Work out the types of a board, once for all runs."""
    models = {model.name: {f: e.type for f, e in model.fields.items()} for model in spec.models}
    schemas: dict[str, dict[str, Any]] = {}
    for it in board.artifacts:
        if isinstance(it, str):
            schemas[it] = json_schema(Ref(it), models)
        else:
            schemas[it.name] = dict(it.schema_)
    schemas.setdefault(TICK, {"type": "object"})
    return ArtifactTypes(schemas, {name: validator_for(it) for name, it in schemas.items()})


class Payload(dict[str, Any]):
    """A payload as functions get it: its fields are keys and attributes alike."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a field
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the payload has no field {name}") from None


def payload_for(function: Callable[..., Any], payload: object) -> object:
    """Return a payload as a function wants it: as the model it names, or with its fields."""
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
    """Tell whether a function takes what it works on alone, and no context."""
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
