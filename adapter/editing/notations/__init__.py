"""Parse the notations in which models write edits: diffs, search/replace blocks, patch envelopes."""

__all__ = ["parse_edits", "registry"]
