"""The model's side: servers and the engine in this process, how they are found, asked, and what their failures mean."""

__all__ = [
    "async_chat_client",
    "builtin_model",
    "chat_client",
    "client_lookup",
    "constraint_fields",
    "context_size",
    "control_token_discovery",
    "embedded_server",
    "endpoint_discovery",
    "native_tools_chat",
    "profiles",
    "prompt_discovery",
    "small_model_check",
    "stream_chunks",
    "template_chat",
    "template_detection",
    "template_files",
]
