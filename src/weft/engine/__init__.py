"""The pure engine: decides what happens next from a spec and values, and performs nothing."""
