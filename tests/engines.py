"""A real llama.cpp with a model of 113 KB: random weights, one layer, a vocabulary of bytes.

It knows nothing, so whatever sense its answers make comes from the grammar.
"""

from __future__ import annotations

from pathlib import Path

import pytest

WIDTH, HEADS, FEED_FORWARD, SPECIAL = 32, 2, 64, 3


def write_random_gguf(path: Path, context_length: int = 4096) -> Path:
    """A GGUF file that llama.cpp loads in 10 ms. The same bytes each time. A token of the context is a byte."""
    gguf = pytest.importorskip("gguf", reason="the test model is written with the gguf package (dependency group dev)")
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(0)
    vocabulary = SPECIAL + 256

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(context_length)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(vocabulary)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))])
    writer.add_token_scores([0.0] * vocabulary)
    token_type = gguf.TokenType
    writer.add_token_types([token_type.UNKNOWN, token_type.CONTROL, token_type.CONTROL, *[token_type.BYTE] * 256])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")

    def random_tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.normal(0, 0.3, shape).astype(numpy.float32))

    random_tensor("token_embd.weight", vocabulary, WIDTH)
    random_tensor("output.weight", vocabulary, WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        random_tensor(f"blk.0.{name}.weight", WIDTH, WIDTH)
    random_tensor("blk.0.ffn_gate.weight", FEED_FORWARD, WIDTH)
    random_tensor("blk.0.ffn_up.weight", FEED_FORWARD, WIDTH)
    random_tensor("blk.0.ffn_down.weight", WIDTH, FEED_FORWARD)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, numpy.float32))

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


ONLY_ASCII = {"logit_bias": [[token, -100] for token in (0, 1, *range(SPECIAL + 128, SPECIAL + 256))]}
"""Keeps random bytes from forming text that is not UTF-8, and out <unk> and <s>, which count as
characters for a grammar but are not written out. A grammar can still force any byte."""
