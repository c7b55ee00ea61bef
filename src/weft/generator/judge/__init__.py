"""Judging a package: the checks it must pass before it is offered."""
