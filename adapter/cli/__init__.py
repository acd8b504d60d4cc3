"""Implement the command line: one module for each command, and the modules that commands share."""

__all__ = ["main"]
