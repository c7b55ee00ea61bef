"""The async shell: performs what the engine decides, and appends what came of it."""
