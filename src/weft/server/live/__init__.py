"""Live delivery: events of runs and artifacts of boards, as they are written, to many viewers."""
