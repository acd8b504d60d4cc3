"""Parser plugins for vLLM and SGLang."""

__all__ = ["sglang", "vllm"]
