"""`adapter serve`: an OpenAI-compatible server that gives tool calls to a model server which only knows text.

One process and one event loop for all streams. The model server is asked with raw
bytes (aiohttp), its answers go through `adapter.protocols`; the openai SDK is not involved.
"""

__all__ = ["app", "request_body", "response_store", "responses_request"]
