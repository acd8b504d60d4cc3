"""Build system prompts, render chat templates, and escape control tokens."""

__all__ = [
    "calling_setup",
    "chat_template",
    "escaping",
    "known_control_tokens",
    "prompt_rendering",
    "system_prompt",
    "template_capabilities",
    "tool_shortlist",
]
