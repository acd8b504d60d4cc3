"""Our reader inside other people's engines."""
