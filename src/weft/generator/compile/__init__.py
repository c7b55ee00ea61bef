"""From an approved action plan to the parts of a workflow, one file for each transformation."""
