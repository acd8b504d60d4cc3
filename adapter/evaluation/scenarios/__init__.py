"""Define the built-in scenarios of `adapter eval` that need code. Others are in ``tables.toml``."""

__all__ = ["long_context", "stateful", "tool_selection"]
