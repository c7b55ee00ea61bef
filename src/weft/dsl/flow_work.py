"""What does the steps of a flow: functions, classes, agents, as a program gives them."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from pydantic import BaseModel

from weft.dsl.objects import LocalObjects
from weft.dsl.parts import made, refusal, require_function, takes, tool_of
from weft.dsl.selectors import Selector, path_of
from weft.dsl.state_type import require_class
from weft.spec import flow as spec
from weft.spec.agents import Agent, HistoryIngredient, LiteralIngredient, PromptSection
from weft.spec.providers import FilterConfig
from weft.spec.tools import AgentTool

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)

_STEP_HINT: Final = "give a function (state) or (state, context), a class with run, or an AgentStep"


class AgentStepLike(Protocol[S_contra]):
    """A class such as weft.flow.AgentStep: it writes what its agent is asked."""

    def user_prompt(self, state: S_contra, /) -> Any: ...  # noqa: ANN401, D102 - text, now or later
    def system_prompt(self) -> Any: ...  # noqa: ANN401, D102


class Runs(Protocol):
    """A class whose objects do a step: `run(state)` or `run(state, context)`."""

    @property
    def run(self) -> Callable[..., Any]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class AgentCall(Generic[S]):
    """A step that an agent does which is declared by name."""

    agent: str
    prompt: str = ""
    output: Selector[S] | None = None


def agent(name: str, *, prompt: str = "", output: Selector[S] | None = None) -> AgentCall[S]:
    """Let a declared agent do a step.

    `{name}` in the prompt inserts a field of the state; `output` is the field that gets the reply.
    """
    return AgentCall(name, prompt, output)


#: What does a step: a function, a class or an object that runs, or an agent.
StepLike: TypeAlias = (
    Callable[[S], Any]
    | Callable[[S, Any], Any]
    | AgentCall[S]
    | AgentStepLike[S]
    | type[AgentStepLike[S]]
    | Runs
    | type[Runs]
)


@dataclass
class Shared:
    """What all steps of a workflow share: objects in code, agents with their tools, names."""

    objects: LocalObjects = field(default_factory=LocalObjects)
    agents: list[Agent] = field(default_factory=list[Agent])
    tools: list[AgentTool] = field(default_factory=list[AgentTool])
    _given: dict[str, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])
    outputs: dict[str, type[BaseModel]] = field(default_factory=dict[str, type[BaseModel]])
    _numbers: Counter[str] = field(default_factory=Counter[str])

    def numbered(self, kind: str, name: str | None) -> str:
        """Return a name, or what a part without one is called: branch_1."""
        if name is not None:
            return _named(name, kind)
        self._numbers[kind] += 1
        return f"{kind}_{self._numbers[kind]}"

    def add_agent(self, it: Agent, tools: Iterable[Callable[..., Any]], output: object) -> None:
        """Add an agent, once. The same may be said of it again, and nothing else."""
        functions = list(tools)
        given = (it, functions, None if output is str else output)
        before = self._given.setdefault(it.agent_name, given)
        if before is not given:
            _require_same(it.agent_name, before, given)
            return
        self.agents.append(it)
        known = [tool_of(self.objects, it.agent_name, function) for function in functions]
        self.tools += [tool for tool in known if tool not in self.tools]
        if output is not None and output is not str:
            what = f"the output of {it.agent_name}"
            self.outputs[it.agent_name] = require_class(output, what)

    def work(self, it: Any, step: str) -> spec.Work:  # noqa: ANN401 - whatever is given
        """Return what does a step, as the spec has it."""
        if isinstance(it, AgentCall):
            return self._call(it)  # pyright: ignore[reportUnknownArgumentType]
        if callable(getattr(it, "system_prompt", None)) and callable(
            getattr(it, "user_prompt", None)
        ):
            return self._agent_step(it, step)
        _require_step(it)
        name, options = self.objects.refer(it, step)
        return made(spec.FunctionWork, function=name, options=options)

    def _call(self, it: AgentCall[Any]) -> spec.AgentWork:
        output = None if it.output is None else path_of(it.output)
        return made(spec.AgentWork, agent=it.agent, prompt=it.prompt, output=output)

    def _agent_step(self, it: Any, step: str) -> spec.AgentWork:  # noqa: ANN401
        kind: type = it if isinstance(it, type) else type(it)
        _require_made(it)
        missing: list[str] = sorted(getattr(kind, "__abstractmethods__", ()))
        if missing:
            fact = f"{kind.__name__} does not define {', '.join(missing)}"
            raise refusal("FLOW011", fact, "write it: a step of an agent needs all three methods")
        declared = made(
            Agent,
            agent_name=kind.__name__,
            description=_first_paragraph(kind.__dict__.get("__doc__")),
            model=getattr(it, "model", None),
        )
        self.add_agent(declared, getattr(it, "tools", ()), getattr(it, "output_type", None))
        name, options = self.objects.refer(it, step)
        return made(spec.AgentWork, agent=kind.__name__, step=name, options=options)


def declared_agent(name: str, prompt: str, description: str, model: str | None) -> Agent:
    """Return an agent whose prompt is one text."""
    sections = (PromptSection(id="prompt", content=prompt),) if prompt else ()
    return made(
        Agent, agent_name=name, prompt_sections=sections, description=description, model=model
    )


def _require_same(name: str, before: tuple[object, ...], given: tuple[object, ...]) -> None:
    """Refuse an agent of which something else was said already."""
    parts = ("prompts, descriptions or models", "tools", "output types")
    other = [part for part, old, new in zip(parts, before, given, strict=True) if old != new]
    if other:
        fact = f'two agents are called "{name}", with other {", other ".join(other)}'
        raise refusal("NAME002", fact, "give one of them another name")


def _named(name: str, what: str) -> str:
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refusal("FLOW002", f"the name {name!r} of a {what} is none", "write a name")
    return name


def step_name(it: Any, name: str | None) -> str:  # noqa: ANN401
    """Return what a step is called: as is said, or like its function, class or agent."""
    if name is not None:
        return _named(name, "step")
    if isinstance(it, AgentCall):
        return it.agent
    own = getattr(it, "__name__", None) or type(it).__name__
    if own in ("<lambda>", "partial"):
        raise refusal("FLOW002", f"the step {it!r} has no name", "give one: name=...", of=it)
    return own


def _first_paragraph(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


def _require_step(it: Any) -> None:  # noqa: ANN401
    is_class = isinstance(it, type)
    run = getattr(it, "run", None) or (_own_call(it) if is_class else it)
    if not callable(run):
        raise refusal("FLOW011", f"{it!r} is not a step", _STEP_HINT)
    _require_made(it)
    own = 1 if is_class else 0
    if not (takes(run, 1 + own) or takes(run, 2 + own)):
        fact = f"{it!r} takes neither (state) nor (state, context)"
        raise refusal("FLOW011", fact, _STEP_HINT, of=run)


def _require_made(it: object) -> None:
    """Refuse a class that needs arguments: it is created without any."""
    if isinstance(it, type) and not takes(it, 0):
        hint = f"give an object: {it.__name__}(...)"
        raise refusal("FLOW011", f"{it.__name__} cannot be made without arguments", hint)


def _own_call(kind: type) -> object:
    """Return what calling an object of a class does; every class itself can be called."""
    return next((vars(it)["__call__"] for it in kind.__mro__ if "__call__" in vars(it)), None)


# -- what a step is shown beside its state, as a program says it


class ContextBuilder(Generic[S]):
    """The pieces of a context, in order; every method returns it."""

    def __init__(self, shared: Shared, step: str) -> None:
        self._shared = shared
        self._step = step
        self._sources: list[spec.StepIngredient] = []
        self._said: dict[str, Any] = {}

    def from_state(self, selector: Selector[S]) -> Self:
        """Show a field of the state, or a part of it."""
        return self._add(made(spec.StateIngredient, path=path_of(selector)))

    def from_retrieval(
        self, collection: type | str, configure: "Callable[[RetrievalBuilder[S]], object]"
    ) -> Self:
        """Show the passages of a collection that fit a query best."""
        retrieval: RetrievalBuilder[S] = RetrievalBuilder(_collection_name(collection))
        require_function(configure, "what asks a collection", "lambda r: r.query(...)")(retrieval)
        return self._add(retrieval.declared())

    def from_board(
        self, board: str, *, filters: FilterConfig | None = None, limit: int = 20
    ) -> Self:
        """Show artifacts of a board, newest first."""
        found = filters or FilterConfig()
        return self._add(made(spec.ArtifactsIngredient, board=board, filters=found, limit=limit))

    def from_variable(self, name: str) -> Self:
        """Show a variable that is not part of the state."""
        return self._add(made(spec.VariableIngredient, name=name))

    def from_literal(self, text: str, *, max_tokens: int | None = None) -> Self:
        """Show a fixed text."""
        if not text.strip():
            raise refusal("FLOW034", "the literal text is empty", "write a text, or leave it out")
        return self._add(made(LiteralIngredient, text=text, max_tokens=max_tokens))

    def from_history(
        self, *, max_messages: int | None = None, max_tokens: int | None = None
    ) -> Self:
        """Show what was said in the run so far."""
        limits = {"max_messages": max_messages, "max_tokens": max_tokens}
        return self._add(made(HistoryIngredient, **limits))

    def formatted(self, options: spec.ContextFormat) -> Self:
        """Say how the pieces become one text."""
        self._said["format"] = options
        return self

    def assembled_by(self, assembler: Any) -> Self:  # noqa: ANN401 - an author's own
        """Let an object of one's own put the context together, in place of sources."""
        name, options = self._shared.objects.refer(assembler, self._step)
        self._said |= {"assembler": name, "options": options}
        return self

    def declared(self) -> spec.StepContext:
        """Return the context as the spec has it."""
        return made(spec.StepContext, sources=tuple(self._sources), **self._said)

    def _add(self, source: spec.StepIngredient) -> Self:
        self._sources.append(source)
        return self


def _collection_name(it: Any) -> str:  # noqa: ANN401
    if isinstance(it, str):
        return it
    name = getattr(it, "collection_name", None)
    if not callable(name):
        hint = "give a class of weft.retrieval.Collection, or its name"
        raise refusal("FLOW034", f"{it!r} is not a collection", hint)
    return str(name())


class RetrievalBuilder(Generic[S]):
    """A question to a collection; every method returns it."""

    def __init__(self, collection: str) -> None:
        self._said: dict[str, Any] = {"collection": collection}
        self._filters: list[spec.RetrievalFilter] = []

    def query(self, query: "str | Callable[[S], object]") -> Self:
        """Ask for a text, or for what a field of the state holds."""
        key = "query" if isinstance(query, str) else "query_path"
        self._said[key] = query if isinstance(query, str) else path_of(query)
        return self

    def top_k(self, count: int) -> Self:
        """Take so many passages at most; 5 unless it is said."""
        self._said["top_k"] = count
        return self

    def min_relevance(self, share: float) -> Self:
        """Take passages that fit at least so well, from 0 to 1; 0.7 unless it is said."""
        self._said["min_relevance"] = share
        return self

    def filter(self, key: str, value: "object | Callable[[S], object]") -> Self:
        """Take only passages whose metadata has a value, or that of a field of the state."""
        found = {"path": path_of(value)} if callable(value) else {"value": value}
        self._filters.append(made(spec.RetrievalFilter, key=key, **found))
        return self

    def declared(self) -> spec.RetrievalIngredient:
        """Return the question as the spec has it."""
        return made(spec.RetrievalIngredient, filters=tuple(self._filters), **self._said)
