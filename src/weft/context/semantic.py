"""The provider that compares meanings: the artifacts that are nearest to a query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.context.similarity import GET_EMBEDDINGS, NO_EMBEDDINGS, text_of
from weft.context.slices import ContextRequest, ContextSlice, Envelope
from weft.engine.variables.triggers import dig
from weft.errors import RetrievalError
from weft.findings import Json
from weft.spec import providers
from weft.spec.providers import CANDIDATES, FilterConfig, Provider


@dataclass(frozen=True, slots=True)
class SemanticContextProvider:
    """The visible artifacts whose texts are nearest in meaning to a query, the nearest first.

    The query is a text, or a field of the artifacts that have woken the agent, or else all they
    say. These are left out: the agent has them anyway. Of what `filters` lets through the newest
    200 are compared, or as many as `filters.limit` says.
    """

    query: str | None = None
    query_field: str | None = None
    limit: int = 10
    threshold: float = 0.3
    filters: FilterConfig = field(default_factory=FilterConfig)

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """Compare them; without embeddings that is a fault, for a fallback to make up for."""
        if request.similarity is None:
            raise RetrievalError(NO_EMBEDDINGS, hint=GET_EMBEDDINGS)
        inputs: Sequence[Envelope] = request.inputs.artifacts
        query = self._query(inputs)
        most = self.filters.limit or CANDIDATES
        found = await request.board.find(self.filters.model_copy(update={"limit": most}))
        own = {it.id for it in inputs}
        others = [it for it in found if it.id not in own]
        scores = await request.similarity.of(query, [text_of(it.payload) for it in others])
        ranked = sorted(zip(scores, others, strict=True), key=lambda it: -it[0])
        near = [(score, it) for score, it in ranked if score >= self.threshold][: self.limit]
        metadata: dict[str, Any] = {
            "compared": len(others),
            "similarity": {it.id: score for score, it in near},
        }
        return ContextSlice([it.item() for _, it in near], metadata)

    def declared(
        self,
        provider: Callable[[Any], Provider],  # noqa: ARG002 - as all
        name: Callable[[Callable[..., Any]], str],  # noqa: ARG002
    ) -> Provider:
        """Return it as a spec has it."""
        return providers.SemanticProvider(
            query=self.query,
            query_field=self.query_field,
            limit=self.limit,
            threshold=self.threshold,
            filters=self.filters,
        )

    def _query(self, inputs: Sequence[Envelope]) -> str:
        if self.query is not None:
            return self.query
        payloads: list[Json] = [it.payload for it in inputs]
        if self.query_field is not None:
            path = tuple(self.query_field.split("."))
            payloads = [dig(it, path) for it in payloads]
        query = text_of(payloads)
        if not query:
            named = f'no field "{self.query_field}" with a text' if self.query_field else "no text"
            raise LookupError(f"what has woken the agent has {named} to compare with")
        return query
