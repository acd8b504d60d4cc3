"""Programs: run, confined, watched, and ended with all they started."""
