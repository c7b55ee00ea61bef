"""Tool servers over the Model Context Protocol."""
