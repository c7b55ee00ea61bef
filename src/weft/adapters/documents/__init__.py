"""Documents in one SQLite file, and in a MongoDB database."""
