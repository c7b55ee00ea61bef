"""The suite every store of documents must pass."""
