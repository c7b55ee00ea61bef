"""What happened in a run, read from its journal."""
