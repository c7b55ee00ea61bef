"""The async shell: performs the commands of the engine and appends their results."""
