"""The JSON shape of events, rows, failures and findings, for every program that reads them."""
