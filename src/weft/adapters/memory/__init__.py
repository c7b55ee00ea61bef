"""The store in memory: quick, and gone when it is closed."""

from weft.adapters.memory.store import MemoryStore

__all__ = ["MemoryStore"]
