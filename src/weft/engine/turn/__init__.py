"""The life of one turn: its stages, its calls, its requests."""
