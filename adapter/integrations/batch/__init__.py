"""Files of a model's outputs, read a row at a time on all cores: each row gets columns with what was read."""

__all__ = ["inputs", "ray_data", "row_parser", "runner", "stats"]
