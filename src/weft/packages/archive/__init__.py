"""Packages as zip files: export, import and writing folders whole or not at all."""
