"""Runs in memory: their inbox, their effects, and how their events are written and followed."""
