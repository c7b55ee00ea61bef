"""Pictures of a workflow: who takes part and who hands off to whom. Text in, text out."""

from weft.diagrams.drawing import Form, Kind, draw

__all__ = ["Form", "Kind", "draw"]
