"""Changes of package files: older spellings, migration, and edits that keep the rest."""
