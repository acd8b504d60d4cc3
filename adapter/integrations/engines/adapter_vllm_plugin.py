"""Register the parsers when vLLM loads this module for ``--tool-parser-plugin``."""

from adapter.integrations.engines.vllm import register

register()
