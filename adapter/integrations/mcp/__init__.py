"""Model Context Protocol: use the tools of MCP servers, and serve a dialect's tools to MCP clients."""

__all__ = ["client", "server", "server_config"]
