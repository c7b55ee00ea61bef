"""Language models behind `weft.ports.model`: over HTTP, by provider, made up, asked, recorded."""
