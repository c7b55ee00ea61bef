"""The store over SQL databases: one body of statements, and a dialect for each database."""

from weft.adapters.sql.sqlite import SqliteStore

__all__ = ["SqliteStore"]
