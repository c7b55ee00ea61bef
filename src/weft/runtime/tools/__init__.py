"""Tool calls: code of packages, hooks, and requests to people."""
