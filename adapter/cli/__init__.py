"""The command line: one module per command, and the modules they share."""

__all__ = ["main"]
