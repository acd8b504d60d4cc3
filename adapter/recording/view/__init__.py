"""The page of `adapter view`: recorded exchanges as rows, and live answers."""

__all__ = ["answer_rows", "live_feed", "page", "page_data", "page_server"]
