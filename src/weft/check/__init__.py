"""Spec in, findings out. Pure: nothing is imported, opened or called to check a workflow."""
