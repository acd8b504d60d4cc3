"""The gate: names and paths as the disk has them, and nothing outside the folder."""
