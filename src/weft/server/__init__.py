"""The server: HTTP, sockets, identity and starts over a host."""
