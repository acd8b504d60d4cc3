"""System prompts, chat templates, and the escaping of control tokens."""

__all__ = [
    "calling_setup",
    "chat_template",
    "control_tokens",
    "escaping",
    "prompt_templates",
    "system_prompt",
    "template_capabilities",
    "tool_shortlist",
]
