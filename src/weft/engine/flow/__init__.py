"""Flows: typed steps in order, with failure handling and compensation."""
