"""Parse files that contain model outputs, in parallel. The results are added to each row as columns."""

__all__ = ["input_and_target_files", "ray_data", "resumable_run", "row_parser", "stats"]
