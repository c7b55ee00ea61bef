"""Findings and results in the formats that people, editors and programs read."""
