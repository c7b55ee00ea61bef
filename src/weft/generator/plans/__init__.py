"""The action plan: its record, rules, diagram, and its parts by workflow."""
