"""The store in PostgreSQL."""

from weft.adapters.sql.postgres.store import PostgresStore as PostgresStore
