"""The page of `adapter view`: recorded exchanges as a list, and answers that are still being streamed."""

__all__ = [
    "conversation_grouping", "exchange_page_data", "live_exchanges", "page_server", "playground_page",
    "playground_parser", "view_page", "view_page_data",
]  # fmt: skip
