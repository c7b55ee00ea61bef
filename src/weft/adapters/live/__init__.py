"""Live streams: within one process, and merged between processes."""
