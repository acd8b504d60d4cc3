"""What is done with text of any kind: lines, differences, cuts, and what must not be shown or written."""
