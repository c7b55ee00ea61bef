"""Folders of plain files: read, written, migrated, packed and fixed."""
