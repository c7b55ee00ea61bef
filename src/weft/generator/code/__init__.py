"""The code of a generated package: tools, components and hooks that work as they stand."""
