"""The suites that every signal, live stream and vault must pass."""
