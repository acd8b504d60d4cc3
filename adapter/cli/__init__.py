"""What the command line does: one file a command, and what they share."""

__all__ = ["main"]
