"""Model servers and the embedded engine: discovery, clients, capabilities and failures."""

__all__ = [
    "async_chat_client", "builtin_model", "chat_client", "chat_client_type_check", "constraint_fields", "context_size",
    "control_token_discovery", "endpoint_discovery", "engine_details", "format_derivation", "in_process_llama_cpp",
    "model_options", "model_queries", "native_tools_chat", "probe_profiles", "prompt_discovery",
    "small_model_detection", "stream_chunks", "template_chat", "template_files", "user_directories",
]  # fmt: skip
