"""The server's observability: metrics, traces, logs and request ids."""

__all__ = ["logs", "metrics", "middleware", "request_info", "setup"]
