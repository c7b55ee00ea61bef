"""The public test kit: scripted models, a manual clock, and the conformance suites of ports."""
