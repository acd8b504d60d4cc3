"""What a model is told: tools in words or as its own chat template writes them, and nothing that could end a turn."""

__all__ = [
    "calling_setup",
    "chat_template",
    "control_tokens",
    "escaping",
    "prompt_templates",
    "system_prompt",
    "template_capabilities",
]
