"""Decode JSON as models write it: strictly, and with named repairs."""

__all__ = ["decode", "strict"]
