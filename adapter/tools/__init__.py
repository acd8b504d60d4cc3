"""Tools: definitions and schemas, name matching, and validation of calls."""

__all__ = [
    "argument_synonyms", "bounded_validator", "call_normalization", "call_validation", "coercion", "example_calls",
    "function_tools", "json_call_extraction", "schema_refs", "schema_simplify", "schema_violation_messages",
    "signatures", "tool", "unbracketed_arguments",
]  # fmt: skip
