"""What travels: events, turns, errors, JSON as models write it, and the names of what was mended or refused."""

__all__ = [
    "arguments",
    "callbacks",
    "errors",
    "events",
    "package_data",
    "program_lookup",
    "rejection_codes",
    "repair_codes",
    "turn",
    "validation",
    "version",
]
