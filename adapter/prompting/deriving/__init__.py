"""Derive a format from a chat template: render conversations that differ in one detail, and compare the prompts."""

__all__ = [
    "codegen",
    "derive_format",
    "format_detection",
    "known_call_locations",
    "learning",
    "probes",
    "report",
    "response_template",
]
