"""What a tool is: its definition and schema, the names it answers to, and the way from a call to a valid one."""

__all__ = [
    "argument_synonyms",
    "call_resolution",
    "call_shapes",
    "coercion",
    "example_calls",
    "function_tools",
    "schema_errors",
    "schema_refs",
    "schema_simplify",
    "tool",
]
