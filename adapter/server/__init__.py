"""`adapter serve`: an OpenAI-compatible server that adds tool calls to model servers without them.

One process and one event loop for all streams. Requests to the model server and its answers are raw bytes (aiohttp),
translated by `adapter.protocols`; the openai SDK is not involved.
"""

__all__ = ["app", "request_body", "response_store", "responses_request"]
