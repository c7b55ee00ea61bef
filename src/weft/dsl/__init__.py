"""Builders: workflows written in Python become the same spec that files do. Pure."""
