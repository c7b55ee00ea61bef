"""Older spellings of package files: read, respelled and migrated."""
