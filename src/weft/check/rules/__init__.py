"""The rules of the checker, by family of codes."""
