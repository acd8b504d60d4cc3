"""What a tool is: its definition and schema, the names it answers to, and the way from a call to a valid one."""
