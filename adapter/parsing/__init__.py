"""How calls are read, whatever the family: the source of text, the segmenter, and the bodies that formats share."""

__all__ = [
    "bare_json",
    "encoding",
    "format",
    "json_scanner",
    "marker_set",
    "marker_tables",
    "parse_policy",
    "parser",
    "stream_buffer",
    "tagged_json",
]
