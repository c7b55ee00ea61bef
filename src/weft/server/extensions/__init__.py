"""Extensions of packages: routers below `/x/NAME`, and services that run beside the server."""
