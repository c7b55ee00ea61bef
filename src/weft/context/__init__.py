"""Context assembly: what an agent sees, from where, and what was left out."""
