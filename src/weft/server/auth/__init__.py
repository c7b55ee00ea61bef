"""Finding out who calls: keys, tokens of an identity provider, and sessions of the page."""
