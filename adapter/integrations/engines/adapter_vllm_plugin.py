"""The file for vLLM's ``--tool-parser-plugin``, which loads it under this name: registers our parsers."""

from adapter.integrations.engines.vllm import register

register()
