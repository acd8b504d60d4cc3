"""The page of `adapter view`: recorded exchanges as a list, and responses that are still being streamed."""

__all__ = [
    "answer_rows", "conversations", "live_feed", "page", "page_data", "page_server", "playground", "playground_reader",
]  # fmt: skip
