"""Opening a host on a workspace: the adapters that come with Weft, put together."""
