"""A journal in memory: quick, and gone when it is closed."""

from weft.adapters.memory.journal import MemoryJournal

__all__ = ["MemoryJournal"]
