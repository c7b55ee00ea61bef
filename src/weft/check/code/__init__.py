"""Static analysis of a package's Python code. Nothing is imported or run."""
