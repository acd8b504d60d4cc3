"""`adapter serve`: an OpenAI-compatible server that adds tool calls to model servers that do not support them.

One process handles all streams in one event loop. It exchanges raw bytes with the model server (aiohttp, not the openai
SDK), and `adapter.protocols` translates them.
"""

__all__ = ["app", "passthrough_rules", "request_body", "response_store", "responses_request"]
