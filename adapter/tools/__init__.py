"""Tools: definitions and schemas, name matching, and validation of calls."""

__all__ = [
    "argument_synonyms",
    "call_extraction",
    "call_normalization",
    "call_resolution",
    "coercion",
    "example_calls",
    "function_tools",
    "schema_errors",
    "schema_refs",
    "schema_simplify",
    "schema_validation",
    "signatures",
    "tool",
    "unbracketed_arguments",
]  # fmt: skip
