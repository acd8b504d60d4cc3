"""Derive a format from a chat template: render conversations that differ in one detail, and compare the prompts."""

__all__ = ["codegen", "detect", "learning", "probes", "report", "result"]
