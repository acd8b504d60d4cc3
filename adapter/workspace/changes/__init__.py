"""What becomes of a change: whole or not at all, on record, and undone again."""
