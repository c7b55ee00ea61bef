"""Retrieval: an agent analyses a document with passages of a research library.

The flow names the library by a class. The adapter that searches it is chosen when the flow runs.

Run it with: python examples/flows/documents.py
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from weft.flow import AgentStep, AssembledContext, Response, Workflow, run_flow
from weft.ports.model import ModelRequest
from weft.retrieval import Collection, RetrievalResult, VectorSearchAdapter
from weft.testing import FunctionModel, InMemoryVectorAdapter


class ResearchLibrary(Collection):
    """Papers about weaving."""


class DocumentState(BaseModel):
    document_summary: str
    analysis_query: str
    language: str = "en"
    analysis: str = ""
    sources: list[str] = []


class AnalyzeDocument(AgentStep[DocumentState]):
    """Answers a question about a document from the library."""

    def system_prompt(self) -> str:
        return "You analyse documents about weaving."

    def user_prompt(self, state: DocumentState) -> str:
        return f"Answer from the context: {state.analysis_query}"

    def apply(self, state: DocumentState, response: Response, assembly: AssembledContext):
        shown = [passage.source_id or "?" for passage in assembly.retrieval_results]
        return {"analysis": response.text, "sources": shown}


FLOW = Workflow.create("DocumentAnalysis", DocumentState).start_with(
    AnalyzeDocument,
    lambda step: step.with_context(
        lambda context: (
            context.from_state(lambda state: state.document_summary)
            .from_retrieval(
                ResearchLibrary,
                lambda library: (
                    library.query(lambda state: state.analysis_query)
                    .top_k(5)
                    .min_relevance(0.7)
                    .filter("language", lambda state: state.language)
                ),
            )
            .from_literal("Always cite sources.")
        )
    ),
)

PAPERS = [
    ("Linen is stronger when it is wet.", "fibres.pdf", "en"),
    ("A loom holds the warp tight.", "looms.pdf", "en"),
    ("Leinen ist nass fester.", "fasern.pdf", "de"),
    ("Wool is weaker when it is wet.", "fibres.pdf#2", "en"),
]


def seeded() -> InMemoryVectorAdapter[ResearchLibrary]:
    """Return an adapter of the test kit, which finds the seeded passages for every query."""
    adapter = InMemoryVectorAdapter[ResearchLibrary]()
    for score, (text, source, language) in zip((0.9, 0.5, 0.8, 0.7), PAPERS, strict=True):
        adapter.seed(RetrievalResult(text, score, source, {"language": language}))
    return adapter


class WordSearch:
    """A custom adapter. The score is the share of the query's words that a passage contains."""

    async def search(
        self,
        query: str,
        *,
        top_k: int = 5,
        min_relevance: float = 0.7,
        filters: Mapping[str, Any] | None = None,
    ) -> list[RetrievalResult]:
        wanted = _words(query)
        found = [
            RetrievalResult(text, len(wanted & _words(text)) / len(wanted), source)
            for text, source, language in PAPERS
            if language == (filters or {}).get("language", language)
        ]
        good = [passage for passage in found if passage.score >= min_relevance]
        return sorted(good, key=lambda passage: -passage.score)[:top_k]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def echo(request: ModelRequest) -> str:
    """Reply, in place of a model, with the size of the context."""
    _system, context, _prompt = [message["content"] or "" for message in request.messages]
    return f"{context.count('---') + 1} passages, {len(context.split())} words of context"


async def analyse(adapter: VectorSearchAdapter[ResearchLibrary]) -> None:
    model = FunctionModel(echo)
    state = DocumentState(
        document_summary="A towel that outlives its owner.",
        analysis_query="linen stronger when wet",
    )
    result = await run_flow(FLOW, state, model=model, collections={ResearchLibrary: adapter})
    (request,) = model.requests
    for message in request.messages:
        first, *lines = (message["content"] or "").splitlines()
        print(f"  {message['role']}: {first}")
        print(*(f"    {line}\n" for line in lines if line), sep="", end="")
    print(f"  reply: {result.output.analysis}; sources: {', '.join(result.output.sources)}")


async def main() -> None:
    print("With the adapter of the test kit:")
    await analyse(seeded())
    print("With another one, and the same flow:")
    await analyse(WordSearch())


if __name__ == "__main__":
    asyncio.run(main())
