"""The conformance suite of document stores."""
