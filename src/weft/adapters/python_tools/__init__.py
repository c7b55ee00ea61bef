"""Tools that are Python functions of a package, imported from its pinned content."""
