"""What is seen of the server from outside: metrics, traces, lines of a log, and the ids by which requests are found."""

__all__ = ["logs", "metrics", "middleware", "request_info", "setup"]
