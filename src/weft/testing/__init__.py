"""The public test kit: scripted models, memory ports, a manual clock, and conformance suites."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weft.testing.clock import ManualClock
    from weft.testing.documents.conformance import (
        DOCUMENT_CHECKS,
        LASTING_DOCUMENT_CHECKS,
        OWN_DOCUMENT_CHECKS,
    )
    from weft.testing.hosts import host_for, read_package
    from weft.testing.models import FunctionModel, ScriptedModel, call
    from weft.testing.network import no_network
    from weft.testing.retrieval import InMemoryVectorAdapter, WordEmbedder
    from weft.testing.store.conformance import SHARED_STORE_CHECKS, STORE_CHECKS

__all__ = [
    "DOCUMENT_CHECKS",
    "LASTING_DOCUMENT_CHECKS",
    "OWN_DOCUMENT_CHECKS",
    "SHARED_STORE_CHECKS",
    "STORE_CHECKS",
    "FunctionModel",
    "InMemoryVectorAdapter",
    "ManualClock",
    "ScriptedModel",
    "WordEmbedder",
    "call",
    "host_for",
    "no_network",
    "read_package",
]

#: Where each name is defined; it is imported when it is first used.
_HOMES: Final = {
    "DOCUMENT_CHECKS": "weft.testing.documents.conformance",
    "FunctionModel": "weft.testing.models",
    "InMemoryVectorAdapter": "weft.testing.retrieval",
    "LASTING_DOCUMENT_CHECKS": "weft.testing.documents.conformance",
    "ManualClock": "weft.testing.clock",
    "OWN_DOCUMENT_CHECKS": "weft.testing.documents.conformance",
    "SHARED_STORE_CHECKS": "weft.testing.store.conformance",
    "STORE_CHECKS": "weft.testing.store.conformance",
    "ScriptedModel": "weft.testing.models",
    "WordEmbedder": "weft.testing.retrieval",
    "call": "weft.testing.models",
    "host_for": "weft.testing.hosts",
    "no_network": "weft.testing.network",
    "read_package": "weft.testing.hosts",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# Hidden from type checkers, so that they find a name that is not there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name not in _HOMES:
            raise AttributeError(f"module 'weft.testing' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
