"""Decode JSON written by models, either strictly or with named repairs, and encode JSON for models."""

__all__ = ["decode", "encode", "load", "strict"]
