"""Tools: definitions and schemas, name matching, and validation of calls."""

__all__ = [
    "argument_synonyms", "call_normalization", "call_resolution", "call_shapes", "coercion", "example_calls",
    "function_tools", "plain_arguments", "schema_errors", "schema_refs", "schema_simplify", "schema_validation",
    "signatures", "tool",
]  # fmt: skip
