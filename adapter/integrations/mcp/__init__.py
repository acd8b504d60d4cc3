"""The Model Context Protocol both ways: tools of its servers for any model, and a dialect's tools for its clients."""

__all__ = ["client", "server", "server_config"]
