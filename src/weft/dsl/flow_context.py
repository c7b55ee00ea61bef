"""What a step is shown beside its state, as a program says it."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from weft.dsl.flow_work import Shared
from weft.dsl.refusals import made, refusal, require_function
from weft.dsl.selectors import Selector, path_of
from weft.spec import flow as spec
from weft.spec.agents import HistoryIngredient, LiteralIngredient
from weft.spec.providers import FilterConfig

S = TypeVar("S")


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
        """Show a variable that is no part of the state."""
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
        raise refusal("FLOW034", f"{it!r} is no collection", hint)
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
