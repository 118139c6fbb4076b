"""Messages and variational bounds: approximate answers about tables."""
