"""A run and the person at the terminal."""
