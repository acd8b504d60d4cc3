"""Parallel parsing of files that contain model outputs. The parsed results are added to each row as columns."""

__all__ = ["input_and_target_files", "ray_data", "resumable_run", "row_parser", "stats"]
