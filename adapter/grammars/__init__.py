"""What a model may write: grammars and schemas made from tool definitions, and the choices left open to it."""

__all__ = ["call_layout", "constraint_mode", "gbnf", "reply_tool", "schema_ir"]
