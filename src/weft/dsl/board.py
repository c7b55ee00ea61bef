"""The builder of boards: it makes the same spec as board.json, agents.json and tools.json."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any, Final, Generic, Literal, Self, cast, get_args

from pydantic import BaseModel

from weft.check.parts import kinds_in
from weft.dsl.objects import LocalObjects
from weft.dsl.parts import (
    REGISTERED,
    BatchSpec,
    FunctionEngine,
    JoinSpec,
    ModelEngine,
    PartT,
    TypeNames,
    board_part,
    seconds,
    takes,
    tool_functions,
    tool_of,
)
from weft.errors import UsageError
from weft.spec import board as spec
from weft.spec import providers
from weft.spec.agents import Agent, PromptSection
from weft.spec.board import PUBLIC, Visibility
from weft.spec.orchestrator import Orchestrator
from weft.spec.part import Part
from weft.spec.providers import FilterConfig, Provider
from weft.spec.tools import AgentTool
from weft.spec.workflow import WorkflowSpec

#: A condition as text, or a function of the payload.
Test = str | Callable[..., Any]

_HOOKS: Final = get_args(spec.HookName)
_BOARD_HOOKS: Final = ("artifact_published", "before_schedule")


@dataclass
class BoardBuilder:
    """Builds the spec of a board."""

    name: str = "board"
    types: TypeNames = field(default_factory=TypeNames)
    objects: LocalObjects = field(default_factory=LocalObjects)
    agents: dict[str, "AgentBuilder"] = field(default_factory=dict[str, "AgentBuilder"])
    components: list[spec.Component] = field(default_factory=list[spec.Component])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    #: The last spec that was built, and its contents.
    _built: tuple[tuple[object, ...], WorkflowSpec] | None = None

    def agent(self, name: str) -> "AgentBuilder":
        """Add an agent to the board."""
        if name in self.agents:
            raise UsageError(f"there is an agent {name} already", hint="give it another name")
        made = self.agents[name] = AgentBuilder(self, name)
        return made

    def build(self) -> WorkflowSpec:
        """Return the board as a spec: the same object until something is added to the board.

        Raises UsageError if the declarations contradict each other.
        """
        if self._built is None or self._built[0] != self._contents():
            built = self._build()
            self._built = self._contents(), built
        return self._built[1]

    def _contents(self) -> tuple[object, ...]:
        """Return everything the spec is built from, to be compared, by identity where possible."""
        agents = (agent.contents for agent in self.agents.values())
        return (len(self.types), len(REGISTERED), len(self.components), *agents)

    def _build(self) -> WorkflowSpec:
        agents = list(self.agents.values())
        declared = tuple(agent.declared() for agent in agents)
        for name in _type_names(declared):
            self.types.add_registered(name)
        return board_part(
            WorkflowSpec,
            orchestrator=Orchestrator(workflow_name=self.name),
            agents=tuple(agent.declared_agent() for agent in agents),
            tools=tuple(tool for agent in agents for tool in agent.tools),
            board=board_part(
                spec.Board,
                artifacts=tuple(self.types.declared()),
                agents=declared,
                components=tuple(self.components),
                **self.options,
            ),
        )

    def known(self, type_: "type[BaseModel] | str") -> "type[BaseModel] | str":
        """Register a class as a type; its name is final when the board is built."""
        if not isinstance(type_, str):
            self.types.add(type_)
        return type_

    def type_name(self, type_: "type[BaseModel] | str") -> str:
        """Return the name of a type; a new class is registered."""
        if isinstance(type_, str):
            return type_
        self.types.add(type_)
        return self.types[type_]

    def provider(self, provider: Any, label: str) -> Provider:  # noqa: ANN401 - a provider of any kind
        """Return a provider in its spec form; custom providers are referred to by name."""
        if isinstance(provider, type):
            raise UsageError(
                f"{provider.__name__} is a class", hint=f"give an object: {provider.__name__}()"
            )
        if type(provider) in kinds_in(Provider):
            made = providers.with_inner(provider, partial(self.provider, label=label))
            if isinstance(made, providers.RedactingProvider):
                names = {
                    key: self.objects.name(code, label) for key, code in made.transform.items()
                }
                made = made.model_copy(update={"transform": names})
            return made
        if not callable(provider) or not takes(provider, 1):
            raise UsageError(
                f"{provider!r} is not a provider: it cannot be called with a request",
                hint="give a function (request), or an object with async __call__(self, request)",
            )
        name, options = self.objects.refer(provider, label)
        return board_part(providers.CustomProvider, provider=name, options=options)

    def test(self, test: Test | None, label: str) -> str | None:
        """Return a condition or the name of a function."""
        return None if test is None else self.objects.name(test, label)

    def component(
        self,
        component: Any,  # noqa: ANN401 - an object with hooks
        label: str,
        allowed: Sequence[str] = _HOOKS,
    ) -> spec.Component:
        """Return a component in its spec form, with the hooks that it defines."""
        hooks = tuple(name for name in _HOOKS if _is_written(component, name))
        wrong = [name for name in hooks if name not in allowed]
        if not hooks or wrong:
            found = f"{', '.join(wrong)}, which is not a hook of the board" if wrong else "no hook"
            raise UsageError(
                f"the component {type(component).__name__} has {found}",
                hint=f"write {', '.join(allowed)}",
            )
        name, options = self.objects.refer(component, label)
        priority = int(getattr(component, "priority", 0))
        return board_part(
            spec.Component, component=name, options=options, priority=priority, hooks=hooks
        )

    def add_component(self, component: Any) -> None:  # noqa: ANN401
        """Add a component that sees all artifacts and all agents of the board."""
        self.components.append(self.component(component, "", _BOARD_HOOKS))


def _type_names(part: object) -> Iterator[str]:
    """Yield the types that subscriptions, publications and filters name."""
    match part:
        case spec.Publication():
            yield part.type
        case spec.Subscription() | FilterConfig():
            yield from part.types
        case _:
            pass
    if isinstance(part, tuple):
        inner = cast("tuple[object, ...]", part)
    else:
        inner = tuple(vars(part).values())
    for value in inner:
        if isinstance(value, tuple | Part):
            yield from _type_names(cast("object", value))


def _is_written(component: object, hook: str) -> bool:
    return callable(getattr(component, hook, None))


class _Declared(Generic[PartT]):
    """A part that names types; classes of the same name are qualified once all are known."""

    def __init__(self, part: type[PartT], named: tuple[str, Any], **fields: Any) -> None:  # noqa: ANN401 - of the part
        self._part = part
        self._named = named
        self._fields = fields
        self.built(str)  # Raises immediately for an invalid value.

    def built(self, name: "Callable[[type[BaseModel] | str], str]") -> PartT:
        """Return the part with the current type names."""
        field_, types = self._named
        several = isinstance(types, list)
        said = tuple(map(name, cast("list[Any]", types))) if several else name(types)
        return board_part(self._part, **{field_: said}, **self._fields)


class AgentBuilder:
    """Builds an agent of a board; every method returns the builder."""

    def __init__(self, board: BoardBuilder, name: str) -> None:
        self._board = board
        self.name: Final = name
        self._about = ""
        self._prompt: list[PromptSection] = []
        self._consumes: list[_Declared[spec.Subscription]] = []
        self._publishes: list[_Declared[spec.Publication]] = []
        self._engines: list[spec.Engine] = []
        self._components: list[spec.Component] = []
        self._said: dict[str, Any] = {}
        self.tools: list[AgentTool] = []

    @property
    def contents(self) -> tuple[object, ...]:
        """Everything declared so far, to detect changes."""
        lists = (self._prompt, self._consumes, self._publishes, self._engines, self._components)
        return (self._about, *map(len, lists), len(self.tools), *self._said.items())

    def description(self, text: str) -> Self:
        """Set the description of the agent, for its model and for people."""
        self._about = text
        return self

    def prompt(self, content: str, *, heading: str | None = None) -> Self:
        """Add a section to the agent's prompt."""
        number = len(self._prompt) + 1
        section = {"id": f"section_{number}", "heading": heading, "content": content}
        self._prompt.append(board_part(PromptSection, **section))
        return self

    def consumes(  # noqa: PLR0913 - its options, all by name
        self,
        *types: type[BaseModel] | str,
        where: Test | None = None,
        semantic_match: str | None = None,
        threshold: float | None = None,
        tags: Iterable[str] = (),
        from_agents: Iterable[str] = (),
        mode: Literal["both", "events", "direct"] = "both",
        priority: int = 0,
        join: JoinSpec | Mapping[str, Any] | None = None,
        batch: BatchSpec | Mapping[str, Any] | None = None,
        activation: str | None = None,
        context_provider: Any = None,  # noqa: ANN401 - a provider of any kind
        scope: Literal["correlation", "partition", "all"] = "correlation",
    ) -> Self:
        """Add a subscription: wake the agent when one artifact of each type has arrived."""
        self._consumes.append(
            _Declared(
                spec.Subscription,
                ("types", [self._board.known(type_) for type_ in types]),
                where=self._board.test(where, self.name),
                semantic_match=semantic_match,
                threshold=threshold,
                tags=tags,
                from_agents=from_agents,
                mode=mode,
                priority=priority,
                join=self._join(join),
                batch=_batch(batch),
                activation=activation,
                context=self._context(context_provider),
                scope=scope,
            )
        )
        return self

    def publishes(
        self,
        *types: type[BaseModel] | str,
        visibility: Visibility | Callable[..., Any] | None = None,
        tags: Iterable[str] = (),
        fan_out: int = 1,
        where: Test | None = None,
        validate: Test | None = None,
    ) -> Self:
        """Declare the types that the agent publishes."""
        seen: Any = visibility
        if callable(visibility):
            seen = self._board.objects.name(visibility, self.name)
        for type_ in types:
            self._publishes.append(
                _Declared(
                    spec.Publication,
                    ("type", self._board.known(type_)),
                    visibility=seen or PUBLIC,
                    tags=tags,
                    fan_out=fan_out,
                    where=self._board.test(where, self.name),
                    validate=self._board.test(validate, self.name),
                )
            )
        return self

    def with_context(
        self,
        provider: Any,  # noqa: ANN401 - a provider of any kind
        *,
        fallback: Any = None,  # noqa: ANN401
        config: Mapping[str, Any] | None = None,
    ) -> Self:
        """Set the provider of the agent's context.

        The fallback is used when the provider fails or takes too long. Custom providers read
        `config` from `request.config`.
        """
        self._said["context"] = self._board.provider(provider, self.name)
        if fallback is not None:
            self._said["fallback"] = self._board.provider(fallback, self.name)
        if config is not None:
            self._said["context_config"] = dict(config)
        return self

    def with_context_filter(
        self,
        filters: FilterConfig | None = None,
        *,
        limit: int | None = None,
        include_state_keys: Iterable[str] | None = None,
        **fields: Any,  # noqa: ANN401 - of FilterConfig
    ) -> Self:
        """Show the agent the artifacts that match a filter.

        Pass a `FilterConfig`, or its fields: `with_context_filter(types={"Invoice"})`.
        """
        if filters is not None and fields:
            raise UsageError(
                f"{', '.join(fields)} is given beside a FilterConfig", hint="put it into the filter"
            )
        self._said["context"] = board_part(
            providers.FilteredContextProvider,
            filters=filters if filters is not None else board_part(FilterConfig, **fields),
            limit=limit,
            include_state_keys=include_state_keys or (),
        )
        return self

    def with_engines(self, *engines: Any) -> Self:  # noqa: ANN401 - engines of any kind
        """Set the engines that produce the artifacts, in order."""
        self._engines += [self._engine(engine) for engine in engines]
        return self

    def with_tools(self, *functions: Callable[..., Any]) -> Self:
        """Add functions that the agent's model can call."""
        for function in tool_functions(self.name, functions):
            self.tools.append(tool_of(self._board.objects, self.name, function))
        return self

    def with_utilities(self, *components: Any) -> Self:  # noqa: ANN401 - an author's own
        """Add components, whose hooks are called around the agent's activations."""
        self._components += [
            self._board.component(component, self.name) for component in components
        ]
        return self

    def labels(self, *labels: str) -> Self:
        """Add labels; the agent sees artifacts that are published for them."""
        self._said["labels"] = labels
        return self

    def schedule(
        self,
        *,
        every: timedelta | float | None = None,
        daily: time | str | None = None,
        at: datetime | None = None,
        cron: str | None = None,
        delay: timedelta | float = 0,
        max_repeats: int | None = None,
    ) -> Self:
        """Wake the agent on a schedule (UTC), with an artifact of the type Tick."""
        self._said["schedule"] = board_part(
            spec.Schedule,
            every_seconds=None if every is None else seconds(every),
            daily=daily.strftime("%H:%M") if isinstance(daily, time) else daily,
            at=at,
            cron=cron,
            delay_seconds=seconds(delay),
            max_repeats=max_repeats,
        )
        return self

    def best_of(self, n: int, score: Callable[..., Any]) -> Self:
        """Run the agent n times and publish the result with the highest score."""
        self._said["best_of"] = board_part(
            spec.BestOf, n=n, score=self._board.objects.name(score, self.name)
        )
        return self

    def max_concurrency(self, n: int) -> Self:
        """Limit the agent's concurrent activations in one correlation."""
        self._said["max_concurrency"] = n
        return self

    def prevent_self_trigger(self, prevent: bool = True) -> Self:  # noqa: FBT001, FBT002 - a switch
        """Set whether the agent ignores its own artifacts."""
        self._said["prevent_self_trigger"] = prevent
        return self

    def agent(self, name: str) -> "AgentBuilder":
        """Add another agent to the same board."""
        return self._board.agent(name)

    def declared_agent(self) -> Agent:
        """Return the agent as declared in agents.json."""
        return board_part(
            Agent,
            agent_name=self.name,
            description=self._about,
            prompt_sections=tuple(self._prompt),
        )

    def declared(self) -> spec.BoardAgent:
        """Return the agent as declared in board.json."""
        return board_part(
            spec.BoardAgent,
            agent=self.name,
            consumes=tuple(
                subscription.built(self._board.type_name) for subscription in self._consumes
            ),
            publishes=tuple(
                publication.built(self._board.type_name) for publication in self._publishes
            ),
            engines=tuple(self._engines),
            components=tuple(self._components),
            **self._said,
        )

    def _context(self, provider: Any) -> Provider | None:  # noqa: ANN401
        return None if provider is None else self._board.provider(provider, self.name)

    def _engine(self, engine: Any) -> spec.Engine:  # noqa: ANN401
        if isinstance(engine, ModelEngine):
            context = self._context(engine.context_provider)
            return board_part(
                spec.ModelEngine,
                model=engine.model,
                instructions=engine.instructions,
                context=context,
            )
        if isinstance(engine, FunctionEngine):
            name, options = self._board.objects.refer(engine.function, self.name)
            context = self._context(engine.context_provider)
        elif callable(getattr(engine, "evaluate", None)) and not isinstance(engine, type):
            name, options = self._board.objects.refer(engine, self.name)
            context = self._context(getattr(engine, "context_provider", None))
        else:
            raise UsageError(
                f"{engine!r} is not an engine",
                hint="give ModelEngine(), FunctionEngine(function) or an Engine of your own",
            )
        return board_part(spec.FunctionEngine, function=name, options=options, context=context)

    def _join(self, join: JoinSpec | Mapping[str, Any] | None) -> spec.Join | None:
        if join is None:
            return None
        given = join if isinstance(join, JoinSpec) else JoinSpec(**join)
        window: dict[str, Any] = {}
        if isinstance(given.within, timedelta):
            window["within_seconds"] = given.within.total_seconds()
        elif given.within is not None:
            window["within_count"] = given.within
        if callable(given.by):
            window["function"] = self._board.objects.name(given.by, self.name)
        else:
            window["by"] = given.by if isinstance(given.by, str) else dict(given.by)
        return board_part(spec.Join, **window)


def _batch(batch: BatchSpec | Mapping[str, Any] | None) -> spec.Batch | None:
    if batch is None:
        return None
    given = batch if isinstance(batch, BatchSpec) else BatchSpec(**batch)
    timeout = None if given.timeout is None else seconds(given.timeout)
    return board_part(spec.Batch, size=given.size, timeout_seconds=timeout)
