"""Decode JSON written by models, strictly or with named repairs."""

__all__ = ["decode", "strict"]
