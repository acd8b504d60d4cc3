"""Derives a format from a chat template: has it filled with conversations that differ in one thing, and compares."""

__all__ = ["codegen", "detect", "probes", "report", "result"]
