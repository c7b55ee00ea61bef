"""The checks of code that a language model wrote. It is read, never executed."""
