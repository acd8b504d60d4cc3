"""Decode JSON written by models, either strictly or with named repairs."""

__all__ = ["decode", "load", "strict"]
