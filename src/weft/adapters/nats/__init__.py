"""Signals and live streams over NATS."""
