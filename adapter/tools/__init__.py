"""Tools: definitions and schemas, name matching, and validation of calls."""

__all__ = [
    "argument_synonyms", "bounded_validator", "call_normalization", "call_validation", "coercion", "decoded_json_calls",
    "example_calls", "function_tools", "literal_backslashes", "schema_refs", "schema_simplify",
    "schema_violation_messages", "signatures", "tool", "tool_set", "unbracketed_arguments",
]  # fmt: skip
