"""Retrieval: collections of passages, and what searches them."""

from weft.ports.retriever import Collection, RetrievalResult, VectorSearchAdapter

__all__ = ["Collection", "RetrievalResult", "VectorSearchAdapter"]
