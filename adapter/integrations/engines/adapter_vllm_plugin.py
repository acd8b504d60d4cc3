"""Module for vLLM's ``--tool-parser-plugin``, which loads it under this name: registers the parsers."""

from adapter.integrations.engines.vllm import register

register()
