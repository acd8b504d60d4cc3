"""Types and functions for all layers: events, turns, errors, JSON decoding, and the codes of repairs and rejections."""

__all__ = [
    "argument_checks", "bounded_parsing", "callback_checks", "errors", "events", "file_lock", "install_advice",
    "package_data", "private_files", "program_lookup", "rejection_codes", "repair_codes", "turn",
    "validation_errors", "version", "yaml_subset"
]  # fmt: skip
