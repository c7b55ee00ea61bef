"""Embeddings made on this machine."""
