"""Our reader inside other people's engines."""

__all__ = ["sglang", "vllm"]
