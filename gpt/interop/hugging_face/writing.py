"""Our model as a folder that transformers opens without code of ours."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.checkpoint import write_tensors
from gpt.data.tokenizer import Tokenizer
from gpt.interop.hugging_face.architecture import Architecture
from gpt.interop.hugging_face.tokenizer import write_tokenizer
from gpt.interop.naming import outward
from gpt.model.gpt import GPT

CONFIG, GENERATION, WEIGHTS = "config.json", "generation_config.json", "model.safetensors"


def write(architecture: Architecture, model: GPT, tokenizer: Tokenizer, folder: Path) -> list[str]:
    """Write configuration, weights and tokenizer.

    Args:
        architecture: that holds the model.
        model: fp32, on the CPU.
        tokenizer: the one that it was trained with.
        folder: an empty one.

    Returns:
        What is to be said of the tokenizer.
    """
    ends = {"bos_token_id": tokenizer.end_of_text, "eos_token_id": tokenizer.end_of_text}
    of_class = {"architectures": [architecture.class_name], "model_type": architecture.kind, "dtype": "float32"}
    _write_json(folder / CONFIG, {**of_class, **architecture.settings(model), **ends})
    _write_json(folder / GENERATION, ends)
    write_tensors(folder / WEIGHTS, weights(architecture, model), {"format": "pt"})
    return write_tokenizer(tokenizer, folder, model.config.context)


def weights(architecture: Architecture, model: GPT) -> dict[str, Tensor]:
    """The weights by the architecture's names; a table that is head and embedding once.

    On meta these are the names and shapes that a folder of such a model must have.
    """
    with torch.device("meta"):
        whole = GPT(architecture.equivalent(model.config)).state_dict()
    ours = model.state_dict()
    filled = {
        name: _neutral(name, tensor, ours["embedding.weight"]) for name, tensor in whole.items() if name not in ours
    }
    return outward({**ours, **filled}, architecture.rows, model.config)


def _neutral(name: str, shaped: Tensor, like: Tensor) -> Tensor:
    """What changes nothing: a gain of 1, a bias of 0; of one tensor's shape, where and what another is."""
    return like.new_zeros(shaped.shape) if name.endswith(".bias") else like.new_ones(shaped.shape)


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", encoding="utf-8")
