"""Grammars and JSON Schemas for constrained decoding, built from tool definitions."""

__all__ = ["call_layout", "constraint_mode", "gbnf", "regex_parser", "reply_tool", "schema_ir"]
