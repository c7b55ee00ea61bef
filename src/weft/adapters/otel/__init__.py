"""Spans of runs for OpenTelemetry collectors."""
