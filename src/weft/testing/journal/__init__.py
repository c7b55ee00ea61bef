"""The suite every journal must pass."""
