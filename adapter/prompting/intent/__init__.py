"""Help for models too small to choose a tool: a ranking of tools, candidate values, and a threshold for calls."""

__all__ = [
    "candidate_values",
    "further_calls",
    "guided_choice",
    "removals",
    "spelling",
    "template_variables",
    "text_values",
    "tool_ranking",
    "value_kinds",
    "verbs",
]
