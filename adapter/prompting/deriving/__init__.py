"""Derive a format from a chat template: render conversations that differ in one detail, and compare the prompts."""

__all__ = ["call_locations", "codegen", "detect", "learning", "probes", "report", "response_template", "result"]
