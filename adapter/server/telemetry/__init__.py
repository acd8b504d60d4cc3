"""Metrics, traces, logs and request ids of the server."""

__all__ = ["logs", "metrics", "middleware", "request_info", "setup"]
