"""A model written as a GGUF file, which llama.cpp reads: our weights under its names.

There is no vocabulary in it: tokens go in and out as ids. The package `gguf` is imported only when a file is written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gpt.interop.hugging_face.architecture import Kind, hidden_width
from gpt.model.block import Block
from gpt.model.gpt import GPT
from gpt.model.position.learned import Learned
from gpt.model.position.rope import Rope

Named = Iterator[tuple[str, Tensor]]
"""Tensors, by the names that llama.cpp knows them under."""


def write_gguf(model: GPT, kind: Kind, path: Path, half: bool) -> None:
    """Write the model.

    Args:
        model: of that shape.
        kind: its architecture there.
        path: of the file.
        half: matrices as fp16; vectors, and what is only looked up, stay fp32, as llama.cpp's own converter has it.
    """
    import gguf

    writer = gguf.GGUFWriter(path, kind)
    for key, value in header(model).items():
        write = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        write(f"{kind}.{key}", value)
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    for name, tensor in tensors(model, kind):
        matrix = tensor.dim() > 1 and not name.startswith("position")
        writer.add_tensor(name, tensor.detach().cpu().to(torch.float16 if half and matrix else torch.float32).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def header(model: GPT) -> dict[str, Any]:
    """The sizes, by key."""
    c = model.config
    sizes: dict[str, Any] = {
        "vocab_size": c.vocab_size,
        "context_length": c.context,
        "embedding_length": c.d_model,
        "block_count": c.n_layer,
        "feed_forward_length": hidden_width(model),
        "attention.head_count": c.n_head,
        "attention.head_count_kv": c.kv_heads,
        "attention.key_length": c.head_size,
        "attention.value_length": c.head_size,
        f"attention.layer_norm{'_rms' if c.norm == 'rmsnorm' else ''}_epsilon": float(c.norm_eps),
    }
    if isinstance(model.position, Rope):
        sizes |= {"rope.dimension_count": c.head_size, "rope.freq_base": float(model.position.base)}
    return sizes


def tensors(model: GPT, kind: Kind) -> Named:
    """All weights; biases that the architecture has and ours has not are zeros."""
    yield "token_embd.weight", model.embedding.weight
    if isinstance(model.position, Learned):
        yield "position_embd.weight", model.position.table.weight
    for number, block in enumerate(model.blocks):
        assert isinstance(block, Block), f"{type(block).__name__} is no block"
        parts = gpt2_block(block) if kind == "gpt2" else llama_block(block, interleaved=kind == "llama")
        yield from ((f"blk.{number}.{name}", tensor) for name, tensor in parts)
    yield from with_bias("output_norm", model.norm, biased=kind == "gpt2")
    if model.head is not None:
        yield from with_bias("output", model.head, biased=False)


def with_bias(name: str, module: Any, biased: bool) -> Named:
    """Weight and bias of a module that has a weight."""
    weight, bias = module.weight, getattr(module, "bias", None)
    yield f"{name}.weight", weight
    if biased or bias is not None:
        yield f"{name}.bias", weight.new_zeros(weight.size(0)) if bias is None else bias


def gpt2_block(block: Block) -> Named:
    """Queries, keys and values as one matrix."""
    modules = {
        "attn_norm": block.attention_norm,
        "attn_qkv": block.attention.qkv,
        "attn_output": block.attention.output,
        "ffn_norm": block.feedforward_norm,
        "ffn_up": block.feedforward.input,
        "ffn_down": block.feedforward.output,
    }
    for name, module in modules.items():
        yield from with_bias(name, module, biased=True)


def llama_block(block: Block, interleaved: bool) -> Named:
    """Queries, keys and values apart, gate and up too; `interleaved`: the halves of a pair are neighbours."""
    attention, feedforward = block.attention, block.feedforward
    width = attention.head_dim
    sizes = [width * heads for heads in (attention.n_head, attention.n_kv_head, attention.n_kv_head)]
    yield from with_bias("attn_norm", block.attention_norm, biased=False)
    for part in ("weight", "bias"):
        joined, gated = getattr(attention.qkv, part), getattr(feedforward.input, part)
        if joined is None:
            continue
        query, key, value = joined.split(sizes)
        yield f"attn_q.{part}", neighbours(query, width) if interleaved else query
        yield f"attn_k.{part}", neighbours(key, width) if interleaved else key
        yield f"attn_v.{part}", value
        gate, up = gated.chunk(2)
        yield f"ffn_gate.{part}", gate
        yield f"ffn_up.{part}", up
    if isinstance(attention.query_norm, nn.RMSNorm) and isinstance(attention.key_norm, nn.RMSNorm):
        yield "attn_q_norm.weight", attention.query_norm.weight
        yield "attn_k_norm.weight", attention.key_norm.weight
    yield from with_bias("attn_output", attention.output, biased=False)
    yield from with_bias("ffn_norm", block.feedforward_norm, biased=False)
    yield from with_bias("ffn_down", feedforward.output, biased=False)


def neighbours(rows: Tensor, width: int) -> Tensor:
    """Rows of heads of `width` reordered, so that row i and row i + width/2 of a head, which are turned together, meet.

    >>> neighbours(torch.tensor([0, 1, 2, 3, 10, 11, 12, 13]), 4)
    tensor([ 0,  2,  1,  3, 10, 12, 11, 13])
    """
    return rows.unflatten(0, (-1, 2, width // 2)).transpose(1, 2).flatten(0, 2)
