"""The parsing engine: the stream buffer, the segmenter, and the body parsers that formats share."""

__all__ = [
    "bracket_delimited_json", "call_encoders", "call_events", "call_format_detection", "fallback_readers",
    "fixture_writer", "format", "format_file", "format_spec", "json_calls", "marker_patterns", "marker_set",
    "marker_tables", "parse_policy", "parser", "stream_buffer", "tagged_json", "unmarked_call_shapes",
    "wrapper_tags",
]  # fmt: skip
