"""Parse the formats in which models write edits: diffs, search/replace blocks, patch envelopes and whole files."""

__all__ = ["parse_edits", "registry", "whole_file"]
