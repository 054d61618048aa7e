"""A checkpoint of nanoGPT's as a model of ours: `nanogpt:FILE`, the ckpt.pt that its train.py writes.

The file is read by PyTorch's reader of bare tensors, which runs no code. Its vocabulary is GPT-2's where it has so many
rows, or that of meta.json beside it. nanoGPT itself keeps a vocabulary of characters in meta.pkl, a pickle, which is
never loaded.
"""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.config import UserError, shown
from gpt.data.tokenizer import Tokenizer
from gpt.data.tokenizer.char import Char
from gpt.data.tokenizer.named import NamedConfig
from gpt.files import read_json
from gpt.interop.foreign import Foreign, checked, empty, refuse_misfit, told_of
from gpt.interop.hugging_face.gpt2 import Gpt2
from gpt.interop.naming import inward, outward
from gpt.model.config import GPTConfig
from gpt.weights import check_finite

ROWS = tuple(row._replace(transposed=False) for row in Gpt2.rows)
"""It names its weights as transformers' GPT-2 does; its matrices are (out, in), as ours."""
SIZES = {
    "n_layer": "n_layer", "n_head": "n_head", "n_embd": "d_model", "block_size": "context", "bias": "bias",
    "vocab_size": "vocab_size", "dropout": "dropout",
}  # fmt: skip
"""Its model_args, and ours."""
ALWAYS: Mapping[str, Any] = {
    "norm": "layernorm",
    "norm_eps": 1e-5,
    "qk_norm": False,
    "position": {"name": "learned"},
    "feedforward": {"name": "gelu", "form": "exact"},
}
"""What all its models have."""
PADDED = 50304
"""Rows of its table unless told otherwise: GPT-2's 50,257 tokens, and as many as make a multiple of 64."""
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Of the numbers in its weights."""
COMPILED = "_orig_mod."
BUFFER = ".attn.bias"
"""How the name of a mask ends, which old versions of PyTorch need."""
HEAD, EMBEDDING = "lm_head.weight", "transformer.wte.weight"
META = "meta.json"


class NanoGpt(Foreign):
    """Such a checkpoint.

    Args:
        where: the file.

    Raises:
        UserError: it is not one, or its weights do not fit its own settings.
    """

    def __init__(self, where: str) -> None:
        self.file = Path(where).expanduser()
        content = read(self.file)
        with told_of(self.file):
            config = configured(content["model_args"])
            self.tensors = named(content["model"])
        super().__init__(f"nanogpt:{self.file.absolute()}", self.file.parent, config)
        self.data = trained_on(content)
        """The data set that it was trained on, where it says so."""
        self._check()

    def weights(self) -> dict[str, Tensor]:
        """All weights by our names, fp32, on the CPU."""
        names = list(empty(self.config).state_dict())
        found = inward(names, self.tensors.__getitem__, ROWS, self.config)
        if HEAD in self.tensors and not torch.equal(self.tensors[HEAD], self.tensors[EMBEDDING]):
            raise UserError(f"run: {self.file}: {HEAD} is not {EMBEDDING}, which nanoGPT ties; take another checkpoint")
        check_finite(found, self.file)
        return found

    def tokenizer(self) -> Tokenizer:
        """The characters of meta.json beside the file, else GPT-2's."""
        meta, rows = self.folder.absolute() / META, self.config.vocab_size
        if meta.exists():
            with told_of(meta):
                return of_as_many(of_characters(read_json(meta)), rows)
        if rows not in (50257, PADDED):
            pickled = f"data/{self.data}/meta.pkl"
            code = f"import json, pickle; m = pickle.load(open('{pickled}', 'rb')); json.dump(m, open('{meta}', 'w'))"
            raise UserError(
                f"run: {meta} is not there, and {rows} rows are not GPT-2's vocabulary; nanoGPT has this one in a "
                f'pickle, which is not loaded here: in its folder, python -c "{code}"'
            )
        return NamedConfig(encoding="gpt2").build(lambda _: iter(()))

    def _check(self) -> None:
        wanted = outward(empty(self.config).state_dict(), ROWS, self.config)
        found = {name: tuple(tensor.shape) for name, tensor in self.tensors.items() if name != HEAD}
        refuse_misfit(self.file, found, {name: tuple(tensor.shape) for name, tensor in wanted.items()})


def read(file: Path) -> dict[str, Any]:
    """The content of a checkpoint; its tensors stay in the file until they are used.

    Raises:
        UserError: it cannot be read, would run code, or is no checkpoint of nanoGPT's.
    """
    try:
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except OSError as error:
        raise UserError(f"run: {file}: cannot be read: {error.strerror or error}; name a ckpt.pt") from None
    except (pickle.UnpicklingError, RuntimeError, ValueError, EOFError, KeyError, AttributeError, TypeError):
        raise UserError(
            f"run: {file} is damaged, or holds more than tensors and plain data, which is never loaded; name a ckpt.pt "
            "that nanoGPT wrote"
        ) from None
    parts = [content.get(part) for part in ("model", "model_args")] if isinstance(content, dict) else []
    if not parts or not all(isinstance(part, dict) for part in parts):
        raise UserError(f"run: {file} is no checkpoint of nanoGPT's: model and model_args are not in it; name another")
    return dict(content)


def configured(args: Mapping[Any, Any]) -> GPTConfig:
    """The configuration that its model_args describe.

    Raises:
        UserError: they describe none, or a setting that nanoGPT does not have.
    """
    if unknown := [key for key in args if key not in SIZES]:
        raise UserError(f"model_args has {shown(unknown[0])}, which nanoGPT has not; {', '.join(SIZES)} can be read")
    given = {"bias": True, **args}  # before it was a setting there were biases
    if given.get("vocab_size") is None:
        given["vocab_size"] = PADDED
    return checked({**ALWAYS, **{SIZES[key]: value for key, value in given.items()}})


def named(state: Mapping[Any, Any]) -> dict[str, Tensor]:
    """The weights by name, without the prefix that torch.compile adds, and without masks.

    Raises:
        UserError: something else is among them.
    """
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()):
        raise UserError("the checkpoint's model holds something else than tensors; name another")
    plain = {name.removeprefix(COMPILED): tensor for name, tensor in state.items()}
    found = {name: tensor for name, tensor in plain.items() if not name.endswith(BUFFER)}
    for name, tensor in found.items():
        if tensor.dtype not in TYPES or tensor.layout is not torch.strided or tensor.device.type != "cpu":
            raise UserError(f"{name} holds no fractional numbers of 16, 32 or 64 bits; name another")
    return found


def trained_on(content: Mapping[str, Any]) -> str:
    """The name of the data set, as a folder below nanoGPT's data/."""
    config = content.get("config")
    name = config.get("dataset") if isinstance(config, dict) else None
    return name if isinstance(name, str) and name.replace("_", "").isalnum() else "shakespeare_char"


def of_as_many(tokenizer: Char, rows: int | None) -> Char:
    """The tokenizer, which must have a character for each row: nanoGPT makes its table so.

    Raises:
        UserError: it has more, or fewer.
    """
    if tokenizer.vocab_size != rows:
        raise UserError(
            f"these are {tokenizer.vocab_size} characters, and the weights have {rows} rows: they are of another data "
            "set; make it from the meta.pkl of the right one"
        )
    return tokenizer


def of_characters(meta: Mapping[str, Any]) -> Char:
    """The tokenizer of characters by their ids, from `stoi`, character to id, or `itos`, the other way round.

    Raises:
        UserError: they are no vocabulary of characters.
    """
    stoi, itos = meta.get("stoi", {}), meta.get("itos", {})
    pairs = itos.items() if isinstance(itos, dict) else enumerate(itos if isinstance(itos, list) else [])
    swapped = [(char, i) for i, char in pairs] or list(stoi.items() if isinstance(stoi, dict) else [])
    by_id = {str(i): char for char, i in swapped}
    text = [by_id.get(str(i), "") for i in range(len(swapped))]
    if not text or any(not isinstance(char, str) or len(char) != 1 for char in text) or text != sorted({*text}):
        raise UserError("the characters by their ids, sorted, are expected: stoi, or itos; make it from meta.pkl again")
    try:
        return Char("".join(text), end_of_text=False, unknown="error")
    except ValueError as error:
        raise UserError(f"{error}; make it from meta.pkl again") from None
