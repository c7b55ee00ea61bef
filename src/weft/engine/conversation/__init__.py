"""Conversations: handoffs between agents, and groups that work in parallel."""
