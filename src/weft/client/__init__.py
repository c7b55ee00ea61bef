"""A client of a Weft server: `Client` has the methods of a host."""

from weft.client.client import Client

__all__ = ["Client"]
