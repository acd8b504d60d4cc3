"""What a model may write: grammars and schemas made from tool definitions, and the choices left open to it."""
