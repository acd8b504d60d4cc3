"""The file for vLLM's ``--tool-parser-plugin``, which loads it under this name: registers our parsers."""

from adapter.engines.vllm import register

register()
