"""`adapter serve`: an OpenAI-compatible server that adds tool calls to model servers that do not support them.

One process handles all streams in one event loop. Requests to the model server and its answers are raw bytes (aiohttp),
and `adapter.protocols` translates them; the openai SDK is not used.
"""

__all__ = ["app", "passthrough_rules", "request_body", "response_references", "response_store"]
