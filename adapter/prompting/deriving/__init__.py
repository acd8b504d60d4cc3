"""Derive a format from a chat template: render conversations that differ in one detail, and compare the prompts."""

__all__ = [
    "codegen",
    "derivation_report",
    "derive_format",
    "format_detection",
    "known_call_locations",
    "learn_from_examples",
    "learn_from_response_template",
    "probe_conversations",
]
