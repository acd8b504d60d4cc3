"""What a session has beyond files and processes: a person, an editor, knowledge, memory, and calls within calls."""
