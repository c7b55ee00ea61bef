"""Weft runs teams of language-model agents whose context is a contract."""
