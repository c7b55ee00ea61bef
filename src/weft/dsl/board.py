"""The builder of boards: the same spec as board.json, agents.json and tools.json say."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any, Final, Generic, Literal, Self, cast, get_args

from pydantic import BaseModel

from weft.dsl.objects import LocalObjects
from weft.dsl.parts import (
    BatchSpec,
    FunctionEngine,
    JoinSpec,
    ModelEngine,
    PartT,
    TypeNames,
    seconds,
    takes,
    tool_of,
    valid,
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
    """A board while it is written."""

    name: str = "board"
    types: TypeNames = field(default_factory=TypeNames)
    objects: LocalObjects = field(default_factory=LocalObjects)
    agents: dict[str, "AgentBuilder"] = field(default_factory=dict[str, "AgentBuilder"])
    components: list[spec.Component] = field(default_factory=list[spec.Component])
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    #: The last spec that was built, and what it was built from.
    _built: tuple[tuple[object, ...], WorkflowSpec] | None = None

    def agent(self, name: str) -> "AgentBuilder":
        """Add an agent to the board."""
        if name in self.agents:
            raise UsageError(f"there is an agent {name} already", hint="give it another name")
        made = self.agents[name] = AgentBuilder(self, name)
        return made

    def build(self) -> WorkflowSpec:
        """Return the board as a spec: the same object until something is added to the board.

        Raises UsageError if something does not fit together.
        """
        if self._built is None or self._built[0] != self._contents():
            built = self._build()
            self._built = self._contents(), built
        return self._built[1]

    def _contents(self) -> tuple[object, ...]:
        """Return everything that the spec is made of; it is compared by identity where possible."""
        agents = (agent.contents for agent in self.agents.values())
        return (*self.types.counts, len(self.components), *agents)

    def _build(self) -> WorkflowSpec:
        agents = list(self.agents.values())
        declared = tuple(agent.declared() for agent in agents)
        for name in _type_names(declared):
            self.types.add_registered(name)
        return valid(
            WorkflowSpec,
            orchestrator=Orchestrator(workflow_name=self.name),
            agents=tuple(it.declared_agent() for it in agents),
            tools=tuple(tool for it in agents for tool in it.tools),
            board=valid(
                spec.Board,
                artifacts=tuple(self.types.declared()),
                agents=declared,
                components=tuple(self.components),
                **self.options,
            ),
        )

    def known(self, it: "type[BaseModel] | str") -> "type[BaseModel] | str":
        """Let a class be a type of the board; what it is called is settled when that is built."""
        if not isinstance(it, str):
            self.types.add(it)
        return it

    def type_name(self, it: "type[BaseModel] | str") -> str:
        """Return what a type is called; a class that is new becomes one of the board."""
        if isinstance(it, str):
            return it
        self.types.add(it)
        return self.types.name(it)

    def provider(self, it: Any, label: str) -> Provider:  # noqa: ANN401 - a provider of any kind
        """Return a provider as the spec has it; one written in Python is referred to."""
        if isinstance(it, type):
            raise UsageError(f"{it.__name__} is a class", hint=f"give an object: {it.__name__}()")
        declare = getattr(it, "declared", None)
        if declare is not None:
            inner, named = (
                partial(self.provider, label=label),
                partial(self.objects.name, label=label),
            )
            return cast("Provider", declare(inner, named))
        if not callable(it) or not takes(it, 1):
            raise UsageError(
                f"{it!r} is not a provider: it cannot be called with a request",
                hint="give a function (request), or an object with async __call__(self, request)",
            )
        name, options = self.objects.refer(it, label)
        return valid(providers.CustomProvider, provider=name, options=options)

    def test(self, it: Test | None, label: str) -> str | None:
        """Return a condition or the name of a function."""
        return None if it is None else self.objects.name(it, label)

    def component(self, it: Any, label: str, allowed: Sequence[str] = _HOOKS) -> spec.Component:  # noqa: ANN401
        """Return a component with those of its hooks that are written."""
        hooks = tuple(name for name in _HOOKS if _is_written(it, name))
        wrong = [name for name in hooks if name not in allowed]
        if not hooks or wrong:
            found = f"{', '.join(wrong)}, which is not a hook of the board" if wrong else "no hook"
            raise UsageError(
                f"the component {type(it).__name__} has {found}",
                hint=f"write {', '.join(allowed)}",
            )
        name, options = self.objects.refer(it, label)
        priority = int(getattr(it, "priority", 0))
        return valid(
            spec.Component, component=name, options=options, priority=priority, hooks=hooks
        )

    def add_component(self, it: Any) -> None:  # noqa: ANN401
        """Let a component see all artifacts and all agents of the board."""
        self.components.append(self.component(it, "", _BOARD_HOOKS))


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


def _is_written(it: object, hook: str) -> bool:
    return callable(getattr(it, hook, None))


class _Declared(Generic[PartT]):
    """A part that names types: two classes of one name are told apart only when all are known."""

    def __init__(self, part: type[PartT], named: tuple[str, Any], **fields: Any) -> None:  # noqa: ANN401 - of the part
        self._part = part
        self._named = named
        self._fields = fields
        self.built(str)  # Raises for a wrong value now.

    def built(self, name: "Callable[[type[BaseModel] | str], str]") -> PartT:
        """Return the part with the names as they are now."""
        field_, types = self._named
        several = isinstance(types, list)
        said = tuple(map(name, cast("list[Any]", types))) if several else name(types)
        return valid(self._part, **{field_: said}, **self._fields)


class AgentBuilder:
    """An agent of a board while it is written; every method returns it."""

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
        """Everything that was declared, to find out whether something was added."""
        lists = (self._prompt, self._consumes, self._publishes, self._engines, self._components)
        return (self._about, *map(len, lists), len(self.tools), *self._said.items())

    def description(self, text: str) -> Self:
        """Describe the agent, for its model and for people."""
        self._about = text
        return self

    def prompt(self, content: str, *, heading: str | None = None) -> Self:
        """Add a section to the agent's prompt."""
        number = len(self._prompt) + 1
        self._prompt.append(PromptSection(id=f"section_{number}", heading=heading, content=content))
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
        """Wake the agent when artifacts come: one of each type; called again, others as well."""
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
        """Say what the agent publishes."""
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
        """Choose what the agent is shown.

        The fallback serves when the provider fails or takes too long. Providers written in Python
        find `config` in `request.config`.
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
        """Show the agent the artifacts that a filter lets through.

        It is a `FilterConfig`, or its fields: `with_context_filter(types={"Invoice"})`.
        """
        if filters is not None and fields:
            raise UsageError(
                f"{', '.join(fields)} is given beside a FilterConfig", hint="put it into the filter"
            )
        self._said["context"] = valid(
            providers.FilteredProvider,
            filters=filters if filters is not None else valid(FilterConfig, **fields),
            limit=limit,
            include_state_keys=include_state_keys or (),
        )
        return self

    def with_engines(self, *engines: Any) -> Self:  # noqa: ANN401 - engines of any kind
        """Choose what works out the artifacts, one engine after the other."""
        self._engines += [self._engine(engine) for engine in engines]
        return self

    def with_tools(self, *functions: Callable[..., Any]) -> Self:
        """Let the agent's model call functions."""
        for function in functions:
            self.tools.append(tool_of(self._board.objects, self.name, function))
        return self

    def with_utilities(self, *components: Any) -> Self:  # noqa: ANN401 - an author's own
        """Let the hooks of components be called around what the agent does."""
        self._components += [
            self._board.component(component, self.name) for component in components
        ]
        return self

    def labels(self, *labels: str) -> Self:
        """Give the agent labels; it sees what is for those that have them."""
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
        """Wake the agent by the clock (UTC), with an artifact of the type Tick."""
        self._said["schedule"] = valid(
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
        """Let the agent work n times and publish the result with the highest score."""
        self._said["best_of"] = valid(
            spec.BestOf, n=n, score=self._board.objects.name(score, self.name)
        )
        return self

    def max_concurrency(self, n: int) -> Self:
        """Let the agent work on at most so many things at once, in one correlation."""
        self._said["max_concurrency"] = n
        return self

    def prevent_self_trigger(self, prevent: bool = True) -> Self:  # noqa: FBT001, FBT002 - a switch
        """Say whether what the agent publishes may wake it again."""
        self._said["prevent_self_trigger"] = prevent
        return self

    def agent(self, name: str) -> "AgentBuilder":
        """Go on with another agent of the same board."""
        return self._board.agent(name)

    def declared_agent(self) -> Agent:
        """Return who the agent is."""
        return valid(
            Agent,
            agent_name=self.name,
            description=self._about,
            prompt_sections=tuple(self._prompt),
        )

    def declared(self) -> spec.BoardAgent:
        """Return how the agent takes part."""
        return valid(
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

    def _engine(self, it: Any) -> spec.Engine:  # noqa: ANN401
        if isinstance(it, ModelEngine):
            context = self._context(it.context_provider)
            return valid(
                spec.ModelEngine, model=it.model, instructions=it.instructions, context=context
            )
        if isinstance(it, FunctionEngine):
            name, options = self._board.objects.refer(it.function, self.name)
            context = self._context(it.context_provider)
        elif callable(getattr(it, "evaluate", None)) and not isinstance(it, type):
            name, options = self._board.objects.refer(it, self.name)
            context = self._context(getattr(it, "context_provider", None))
        else:
            raise UsageError(
                f"{it!r} is not an engine",
                hint="give ModelEngine(), FunctionEngine(function) or an Engine of your own",
            )
        return valid(spec.FunctionEngine, function=name, options=options, context=context)

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
        return valid(spec.Join, **window)


def _batch(batch: BatchSpec | Mapping[str, Any] | None) -> spec.Batch | None:
    if batch is None:
        return None
    given = batch if isinstance(batch, BatchSpec) else BatchSpec(**batch)
    timeout = None if given.timeout is None else seconds(given.timeout)
    return valid(spec.Batch, size=given.size, timeout_seconds=timeout)
