"""The code of flows: linking it, preparing its input and calling it."""
