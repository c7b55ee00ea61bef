"""Variables: access, triggers, conditions and computed values."""
