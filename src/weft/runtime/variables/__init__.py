"""Variables whose values come from outside the run."""
