"""Boards: typed artifacts that wake agents."""
