"""Model servers and the embedded engine: discovery, clients, capabilities and failures."""

__all__ = [
    "async_chat_client",
    "builtin_model",
    "chat_client",
    "chat_client_check",
    "constraint_fields",
    "context_size",
    "control_token_discovery",
    "embedded_server",
    "endpoint_discovery",
    "engine_details",
    "model_options",
    "model_profiles",
    "native_tools_chat",
    "prompt_discovery",
    "small_model_detection",
    "stream_chunks",
    "template_chat",
    "template_detection",
    "template_files",
]
