"""What protects the server before a request reaches a route: limits, deadlines, Host and Origin."""
