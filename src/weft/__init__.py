"""Weft runs teams of language-model agents whose context is a contract."""

__all__ = ["__version__"]

__version__ = "0.1.0"
