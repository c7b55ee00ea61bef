"""What the Python code of a package says, read from its text: nothing is imported or run."""
