"""Pure builders: workflows written in Python become the same spec as files."""
