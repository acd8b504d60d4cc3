"""Build the page of `adapter view`, which lists recorded exchanges and answers that are still being streamed."""

__all__ = [
    "conversation_grouping", "exchange_page_data", "live_exchanges", "page_server", "playground_page",
    "playground_parser", "view_page", "view_page_data",
]  # fmt: skip
