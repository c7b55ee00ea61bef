"""Boards at run time: providers, components and engines in code, publishing, collecting."""
