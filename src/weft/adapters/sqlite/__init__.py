"""A journal in one SQLite file."""

from weft.adapters.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
