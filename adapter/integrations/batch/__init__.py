"""Parallel parsing of files that contain model outputs. Each row gets columns with the parsed result."""

__all__ = ["input_files", "ray_data", "resumable_run", "row_parser", "stats"]
