"""Parsers for the text after a call's opening marker (`adapter.parsing.format.BodyReader`), which formats share."""

__all__ = [
    "arg_key_value", "arrow_call", "bare_xml_function", "call_announcing_tags", "call_colon_tag", "call_section",
    "compiled_format", "continue_block", "deepseek_tokens", "dsml", "format_compiler", "format_file_calls",
    "gemma_call", "gemma_encoder", "generic_call_tags", "harmony_messages", "invoke_tags", "key_value_tags",
    "name_and_argument_elements", "name_then_json", "nested_elements", "python_encoder", "python_parser",
    "python_scanner", "react_lines", "recipient_header", "tagged_arguments", "tagged_value_end", "tool_call_tag",
    "tool_call_token", "tool_calls_tag", "worded_call", "worded_call_start", "xml_function", "xml_invoke",
    "xml_invoke_tags", "xml_named_function",
]  # fmt: skip
