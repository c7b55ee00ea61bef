"""Documents in one SQLite file, in PostgreSQL, and in a MongoDB database."""
