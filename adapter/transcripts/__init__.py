"""Conversations kept as files: their form, how they are written, and how they run again."""
