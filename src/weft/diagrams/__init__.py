"""Pictures of a workflow: who takes part and how the word passes on. Text in, text out."""

from weft.diagrams.drawing import Form, Kind, draw

__all__ = ["Form", "Kind", "draw"]
