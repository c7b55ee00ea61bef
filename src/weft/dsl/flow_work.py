"""The work of a flow's steps, given as functions, classes or agents."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, Self, TypeAlias, TypeVar

from pydantic import BaseModel

from weft.dsl.objects import LocalObjects
from weft.dsl.parts import flow_part, refusal, require_function, takes, tool_functions, tool_of
from weft.dsl.selectors import Selector, path_of
from weft.dsl.state_type import require_class
from weft.spec import flow as spec
from weft.spec.agents import Agent, HistoryIngredient, LiteralIngredient, PromptSection
from weft.spec.providers import FilterConfig
from weft.spec.tools import AgentTool

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)

_STEP_HINT: Final = "give a function (state) or (state, context), a class with run, or an AgentStep"

METHODS_HINT: Final = "write it: a step of an agent needs system_prompt, user_prompt and apply"


class AgentStepLike(Protocol[S_contra]):
    """A class such as weft.flow.AgentStep, which builds the prompts of its agent."""

    def user_prompt(self, state: S_contra, /) -> Any: ...  # noqa: ANN401, D102 - text, now or later
    def system_prompt(self) -> Any: ...  # noqa: ANN401, D102


class Runs(Protocol):
    """A class with `run(state)` or `run(state, context)`."""

    @property
    def run(self) -> Callable[..., Any]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class AgentCall(Generic[S]):
    """A step done by a declared agent."""

    agent: str
    prompt: str = ""
    output: Selector[S] | None = None


def agent(name: str, *, prompt: str = "", output: Selector[S] | None = None) -> AgentCall[S]:
    """Return a step that a declared agent does.

    `{name}` in the prompt inserts a field of the state; `output` is the field that gets the reply.
    """
    return AgentCall(name, prompt, output)


#: The work of a step: a function, a class or object with `run`, or an agent.
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
    """What the builders of a workflow share: objects, agents with their tools, names."""

    objects: LocalObjects = field(default_factory=LocalObjects)
    agents: list[Agent] = field(default_factory=list[Agent])
    tools: list[AgentTool] = field(default_factory=list[AgentTool])
    _given: dict[str, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])
    outputs: dict[str, type[BaseModel]] = field(default_factory=dict[str, type[BaseModel]])
    _numbers: Counter[str] = field(default_factory=Counter[str])

    def numbered(self, kind: str, name: str | None) -> str:
        """Return the name of a part, or a default such as branch_1."""
        if name is not None:
            return _require_name(name, kind)
        self._numbers[kind] += 1
        return f"{kind}_{self._numbers[kind]}"

    def add_agent(
        self, declared: Agent, tools: Iterable[Callable[..., Any]], output: object
    ) -> None:
        """Add an agent. A repeated declaration must be equal to the first."""
        functions = tool_functions(declared.agent_name, tools)
        given = (declared, functions, None if output is str else output)
        before = self._given.setdefault(declared.agent_name, given)
        if before is not given:
            _require_same(declared.agent_name, before, given)
            return
        self.agents.append(declared)
        known = [tool_of(self.objects, declared.agent_name, function) for function in functions]
        self.tools += [tool for tool in known if tool not in self.tools]
        if output is not None and output is not str:
            what = f"the output of {declared.agent_name}"
            self.outputs[declared.agent_name] = require_class(output, what)

    def work(self, work: Any, step: str) -> spec.Work:  # noqa: ANN401 - checked here
        """Return the work of a step in its spec form."""
        if isinstance(work, AgentCall):
            return self._call(work)  # pyright: ignore[reportUnknownArgumentType]
        if callable(getattr(work, "system_prompt", None)) and callable(
            getattr(work, "user_prompt", None)
        ):
            return self._agent_step(work, step)
        _require_step(work)
        name, options = self.objects.refer(work, step)
        return flow_part(spec.FunctionWork, function=name, options=options)

    def _call(self, call: AgentCall[Any]) -> spec.AgentWork:
        output = None if call.output is None else path_of(call.output)
        return flow_part(spec.AgentWork, agent=call.agent, prompt=call.prompt, output=output)

    def _agent_step(self, work: Any, step: str) -> spec.AgentWork:  # noqa: ANN401
        kind: type = work if isinstance(work, type) else type(work)
        _require_instantiable(work)
        missing = missing_methods(kind)
        if missing:
            fact = f"{kind.__name__} does not define {', '.join(missing)}"
            raise refusal("FLOW011", fact, METHODS_HINT)
        declared = flow_part(
            Agent,
            agent_name=kind.__name__,
            description=_first_paragraph(kind.__dict__.get("__doc__")),
            model=getattr(work, "model", None),
        )
        self.add_agent(declared, getattr(work, "tools", ()), getattr(work, "output_type", None))
        name, options = self.objects.refer(work, step)
        return flow_part(spec.AgentWork, agent=kind.__name__, step=name, options=options)


def missing_methods(kind: type) -> list[str]:
    """Return the names of abstract methods that a class does not define."""
    return [
        name
        for name in sorted(dir(kind))
        if getattr(getattr(kind, name, None), "__isabstractmethod__", False)
    ]


def declared_agent(name: str, prompt: str, description: str, model: str | None) -> Agent:
    """Return an agent whose prompt is one text."""
    sections = (flow_part(PromptSection, id="prompt", content=prompt),) if prompt != "" else ()
    return flow_part(
        Agent, agent_name=name, prompt_sections=sections, description=description, model=model
    )


def _require_same(name: str, before: tuple[object, ...], given: tuple[object, ...]) -> None:
    """Refuse an agent that was declared differently before."""
    parts = ("prompts, descriptions or models", "tools", "output types")
    other = [part for part, old, new in zip(parts, before, given, strict=True) if old != new]
    if other:
        fact = f'two agents are called "{name}", with other {", other ".join(other)}'
        raise refusal("NAME002", fact, "give one of them another name")


def _require_name(name: str, what: str) -> str:
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refusal("FLOW002", f"the name {name!r} of a {what} is none", "write a name")
    return name


def step_name(work: Any, name: str | None) -> str:  # noqa: ANN401
    """Return the name of a step: the given one, or that of its function, class or agent."""
    if name is not None:
        return _require_name(name, "step")
    if isinstance(work, AgentCall):
        return work.agent
    own = getattr(work, "__name__", None) or type(work).__name__
    if own in ("<lambda>", "partial"):
        raise refusal("FLOW002", f"the step {work!r} has no name", "give one: name=...", of=work)
    return own


def _first_paragraph(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


def _require_step(work: Any) -> None:  # noqa: ANN401
    is_class = isinstance(work, type)
    run = getattr(work, "run", None) or (_own_call(work) if is_class else work)
    if not callable(run):
        raise refusal("FLOW011", f"{work!r} is not a step", _STEP_HINT)
    _require_instantiable(work)
    own = 1 if is_class else 0
    if not (takes(run, 1 + own) or takes(run, 2 + own)):
        fact = f"{work!r} takes neither (state) nor (state, context)"
        raise refusal("FLOW011", fact, _STEP_HINT, of=run)


def _require_instantiable(work: object) -> None:
    """Refuse a class that needs arguments: it is created without any."""
    if isinstance(work, type) and not takes(work, 0):
        hint = f"give an object: {work.__name__}(...)"
        raise refusal("FLOW011", f"{work.__name__} cannot be created without arguments", hint)


def _own_call(kind: type) -> object:
    """Return the `__call__` that a class defines for its objects."""
    return next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)


# -- the context of a step besides its state


class ContextBuilder(Generic[S]):
    """Builds a context from its parts, in order; every method returns the builder."""

    def __init__(self, shared: Shared, step: str) -> None:
        self._shared = shared
        self._step = step
        self._sources: list[spec.StepIngredient] = []
        self._said: dict[str, Any] = {}

    def from_state(self, selector: Selector[S]) -> Self:
        """Show a field of the state, or a part of it."""
        return self._add(flow_part(spec.StateIngredient, path=path_of(selector)))

    def from_retrieval(
        self, collection: type | str, configure: "Callable[[RetrievalBuilder[S]], object]"
    ) -> Self:
        """Show the passages of a collection that match a query best."""
        retrieval: RetrievalBuilder[S] = RetrievalBuilder(_collection_name(collection))
        require_function(configure, "what asks a collection", "lambda r: r.query(...)")(retrieval)
        return self._add(retrieval.declared())

    def from_board(
        self, board: str, *, filters: FilterConfig | None = None, limit: int = 20
    ) -> Self:
        """Show artifacts of a board, newest first."""
        found = filters or FilterConfig()
        return self._add(
            flow_part(spec.ArtifactsIngredient, board=board, filters=found, limit=limit)
        )

    def from_variable(self, name: str) -> Self:
        """Show a variable that is not part of the state."""
        return self._add(flow_part(spec.VariableIngredient, name=name))

    def from_literal(self, text: str, *, max_tokens: int | None = None) -> Self:
        """Show a fixed text."""
        if not text.strip():
            raise refusal("FLOW034", "the literal text is empty", "write a text, or leave it out")
        return self._add(flow_part(LiteralIngredient, text=text, max_tokens=max_tokens))

    def from_history(
        self, *, max_messages: int | None = None, max_tokens: int | None = None
    ) -> Self:
        """Show the conversation so far."""
        limits = {"max_messages": max_messages, "max_tokens": max_tokens}
        return self._add(flow_part(HistoryIngredient, **limits))

    def formatted(self, options: spec.ContextFormat) -> Self:
        """Set the format of the text."""
        self._said["format"] = options
        return self

    def assembled_by(self, assembler: Any) -> Self:  # noqa: ANN401 - an author's own
        """Set an object that assembles the context, instead of sources."""
        name, options = self._shared.objects.refer(assembler, self._step)
        self._said |= {"assembler": name, "options": options}
        return self

    def declared(self) -> spec.StepContext:
        """Return the context in its spec form."""
        return flow_part(spec.StepContext, sources=tuple(self._sources), **self._said)

    def _add(self, source: spec.StepIngredient) -> Self:
        self._sources.append(source)
        return self


def _collection_name(collection: Any) -> str:  # noqa: ANN401
    if isinstance(collection, str):
        return collection
    name = getattr(collection, "collection_name", None)
    if not callable(name):
        hint = "give a class of weft.retrieval.Collection, or its name"
        raise refusal("FLOW034", f"{collection!r} is not a collection", hint)
    return str(name())


class RetrievalBuilder(Generic[S]):
    """Builds a retrieval; every method returns the builder."""

    def __init__(self, collection: str) -> None:
        self._said: dict[str, Any] = {"collection": collection}
        self._filters: list[spec.RetrievalFilter] = []

    def query(self, query: "str | Callable[[S], object]") -> Self:
        """Set the query: a text, or a field of the state."""
        key = "query" if isinstance(query, str) else "query_path"
        self._said[key] = query if isinstance(query, str) else path_of(query)
        return self

    def top_k(self, count: int) -> Self:
        """Set the most passages to return; the default is 5."""
        self._said["top_k"] = count
        return self

    def min_relevance(self, share: float) -> Self:
        """Set the least relevance of passages, from 0 to 1; the default is 0.7."""
        self._said["min_relevance"] = share
        return self

    def filter(self, key: str, value: "object | Callable[[S], object]") -> Self:
        """Keep only passages whose metadata has a value, fixed or from a field of the state."""
        found = {"path": path_of(value)} if callable(value) else {"value": value}
        self._filters.append(flow_part(spec.RetrievalFilter, key=key, **found))
        return self

    def declared(self) -> spec.RetrievalIngredient:
        """Return the retrieval in its spec form."""
        return flow_part(spec.RetrievalIngredient, filters=tuple(self._filters), **self._said)
