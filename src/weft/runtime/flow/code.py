"""The code of a flow: its state, functions, agents and assemblers, found once for all runs."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, cast, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from weft.context.agent_step import AgentStep, ContextAssembler
from weft.dsl.flow_work import METHODS_HINT, missing_methods
from weft.dsl.objects import given_key
from weft.engine.flow.plan import steps_of, works_of
from weft.ports.retrieval import Collection, VectorSearchAdapter
from weft.runtime.linked_objects import ObjectMaker, display_name, unusable
from weft.spec.flow import AgentWork, Flow, FunctionWork, RetrievalIngredient, StepContext
from weft.spec.part import JsonMap

#: Returns the adapter of a collection.
FindAdapter = Callable[[str], VectorSearchAdapter[Any]]


@dataclass(frozen=True, slots=True)
class LinkedFunction:
    """The function of a step."""

    name: str
    call: Callable[..., Any]
    #: Whether it takes the state alone.
    alone: bool
    #: Whether its author named it.
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class LinkedAssembler:
    """The assembler of a context: an object, or a class that is instantiated per tenant."""

    name: str
    made: ContextAssembler[Any] | type
    options: JsonMap
    #: The parameters of the class that take adapters, and of which collections.
    adapters: Mapping[str, str]

    def instance(self, find: FindAdapter) -> ContextAssembler[Any]:
        """Return the assembler object with the adapters of its parameters."""
        if not isinstance(self.made, type):
            return self.made
        found = {name: find(collection) for name, collection in self.adapters.items()}
        return self.made(**self.options, **found)


@dataclass(frozen=True, slots=True)
class FlowCode:
    """The linked code of a flow."""

    #: The class of the state; None if code receives a mapping.
    state: type[BaseModel] | None
    #: By name and options.
    functions: Mapping[str, LinkedFunction]
    agents: Mapping[str, AgentStep[Any]]
    assemblers: Mapping[str, LinkedAssembler]
    #: All collections that its steps search.
    collections: frozenset[str]

    def function(self, work: FunctionWork) -> LinkedFunction:
        return self.functions[given_key(work.function, work.options)]

    def agent(self, work: AgentWork) -> AgentStep[Any]:
        return self.agents[given_key(work.step or "", work.options)]

    def assembler(self, context: StepContext) -> LinkedAssembler | None:
        if context.assembler is None:
            return None
        return self.assemblers[given_key(context.assembler, context.options)]


def link_flow(flow: Flow, objects: Mapping[str, Any], local: Mapping[str, object]) -> FlowCode:
    """Return the code of a flow; raises LinkError that names unusable code."""
    maker = ObjectMaker(objects, local)
    functions: dict[str, LinkedFunction] = {}
    agents: dict[str, AgentStep[Any]] = {}
    for work in works_of(flow):
        if isinstance(work, FunctionWork):
            functions[given_key(work.function, work.options)] = _function(maker, work)
        elif work.step is not None:
            agents[given_key(work.step, work.options)] = _agent(maker, work.step, work.options)
    assemblers = {
        given_key(context.assembler, context.options): _assembler(
            maker, context.assembler, context.options
        )
        for context in _contexts(flow)
        if context.assembler is not None
    }
    return FlowCode(
        state=None if flow.state is None else _state(flow.state, objects[flow.state]),
        functions=functions,
        agents=agents,
        assemblers=assemblers,
        collections=frozenset(_collections(flow, assemblers)),
    )


def _contexts(flow: Flow) -> Iterator[StepContext]:
    return (step.context for step in steps_of(flow) if step.context is not None)


def _collections(flow: Flow, assemblers: Mapping[str, LinkedAssembler]) -> Iterator[str]:
    for context in _contexts(flow):
        yield from (
            source.collection
            for source in context.sources
            if isinstance(source, RetrievalIngredient)
        )
    for assembler in assemblers.values():
        yield from assembler.adapters.values()


def _state(name: str, found: object) -> type[BaseModel]:
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise unusable(name, "is not a state class", "derive it from pydantic.BaseModel")
    for field, why in lost_fields(found):
        hint = "leave it out of the state, or keep a reference to it there, such as a name or an id"
        raise unusable(name, f"cannot be stored as JSON: {field} {why}", hint)
    return found


def _function(maker: ObjectMaker, work: FunctionWork) -> LinkedFunction:
    made = maker.instance(work.function, work.options)
    call = made if inspect.isroutine(made) else getattr(made, "run", made)
    if not callable(call):
        raise unusable(
            work.function, "does no step", "name a function, or a class with a method `run`"
        )
    count = _parameter_count(call)
    if count not in (1, 2):
        raise unusable(
            work.function,
            "takes neither (state) nor (state, context)",
            "let it take the state, and a StepContext if it wants one",
        )
    is_named = getattr(made, "__name__", "") != "<lambda>"
    return LinkedFunction(display_name(work.function, made), call, count == 1, is_named)


def _parameter_count(call: Callable[..., Any]) -> int:
    """Return the number of parameters without a default."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # Functions of extension modules may have no signature.
        return 1
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    wanted = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty or parameter.name == "context"
    ]
    if any(parameter.kind is parameter.KEYWORD_ONLY for parameter in wanted):
        return 0
    return sum(parameter.kind is not parameter.VAR_KEYWORD for parameter in wanted)


def _agent(maker: ObjectMaker, name: str, options: JsonMap) -> AgentStep[Any]:
    made = maker.instance(name, options)
    if isinstance(made, AgentStep):
        step = cast("AgentStep[Any]", made)
        missing = missing_methods(type(step))
        if missing:
            raise unusable(name, f"does not define {', '.join(missing)}", METHODS_HINT)
        for method in (step.system_prompt, step.user_prompt):
            if inspect.iscoroutinefunction(method):
                hint = "write it as a plain function; an assembler or build_messages may be async"
                raise unusable(name, f"has an async {method.__name__}", hint)
        return step
    raise unusable(name, "is not an AgentStep", "derive it from weft.flow.AgentStep")


def _assembler(maker: ObjectMaker, name: str, options: JsonMap) -> LinkedAssembler:
    found = maker.objects[name]
    adapters = dict(_adapters(found)) if isinstance(found, type) else {}
    adapters = {name: collection for name, collection in adapters.items() if name not in options}
    made = found if adapters else maker.instance(name, options)
    if not callable(getattr(made, "assemble", None)):
        raise unusable(
            name, "assembles no context", "give it `async def assemble(self, state, context)`"
        )
    return LinkedAssembler(display_name(name, made), made, options, adapters)


def _adapters(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a class that take adapters, and the collections of these."""
    try:
        hints = get_type_hints(kind.__init__)
    except (NameError, TypeError):  # It is created without adapters, or its creation fails.
        return
    for name, hint in hints.items():
        of = get_args(hint)
        if get_origin(hint) is VectorSearchAdapter and isinstance(of[0], type):
            collection = cast("type[Collection]", of[0])
            yield name, collection.collection_name()


# -- fields of a state that would be lost: the state is kept as JSON, and they are not written


_SECRETS: Final = (Secret, SecretBytes, SecretStr)


def lost_fields(kind: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class and its parts that JSON cannot represent, and why."""
    yield from _lost_in_model(kind, "", {kind})


def _lost_in_model(kind: type[BaseModel], place: str, seen: set[type]) -> Iterator[tuple[str, str]]:
    for name, field in kind.model_fields.items():
        if field.exclude or getattr(field, "exclude_if", None):  # The latter since pydantic 2.12.
            yield f"{place}{name}", "is excluded from serialization (exclude)"
        yield from _lost_in_type(field.annotation, f"{place}{name}", seen)


def _lost_in_type(annotation: object, place: str, seen: set[type]) -> Iterator[tuple[str, str]]:
    named = getattr(annotation, "__value__", None)  # The type behind `type X = ...`.
    for part in (*get_args(annotation), *([] if named is None else [named])):
        yield from _lost_in_type(part, place, seen)
    if not isinstance(get_origin(annotation) or annotation, type):
        return
    kind = cast("type[Any]", get_origin(annotation) or annotation)
    if kind in seen:
        return
    if issubclass(kind, _SECRETS):
        yield place, f"is a {kind.__name__}, which is written as asterisks"
    elif issubclass(kind, BaseModel):
        yield from _lost_in_model(kind, f"{place}.", {*seen, kind})
    elif is_dataclass(kind) or is_typeddict(kind):
        for name, hint in _hints(kind).items():
            yield from _lost_in_type(hint, f"{place}.{name}", {*seen, kind})


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except (
        NameError
    ):  # A local name of a function: pydantic has resolved it, get_type_hints cannot.
        return {}
