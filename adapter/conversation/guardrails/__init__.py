"""Answers that do not bring a task on: recognised, and what is to be done about them. No I/O."""
