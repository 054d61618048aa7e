"""llama.cpp, by its own functions in llama-cpp-python: decoding only, on the CPU.

Our weights are written as a GGUF file, read from it, and the file is removed. Matrices, keys and values are fp32, or
fp16 where ours are of two bytes. All texts are sequences of one batch; each step's tokens are picked by its greedy
sampler. It has as many threads as PyTorch.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch

from gpt.device import DTYPES, Precision
from gpt.insight.bench.gguf_file import write_gguf
from gpt.insight.bench.peer import NoPeerError, Peer, require
from gpt.insight.bench.race import Contender, Entry
from gpt.insight.bench.shape import kind_of
from gpt.interop.hugging_face.architecture import Kind
from gpt.model.gpt import GPT

NAME: Literal["llama_cpp"] = "llama_cpp"


def build(model: GPT) -> Peer:
    """The peer of our model.

    Raises:
        NoPeerError: it has no architecture of this shape; a package is not installed; ours is not on the CPU.
    """
    kind = kind_of(model, "llama.cpp")
    found = require("llama-cpp-python", "bench")
    require("gguf", "bench")
    device = model.embedding.weight.device
    if device.type != "cpu":
        raise NoPeerError(f"llama.cpp is measured on a CPU, this is {device.type}")
    return LlamaCpp(model, kind, found)


class LlamaCpp(Peer):
    """Our model, run by llama.cpp."""

    name = NAME

    def __init__(self, model: GPT, kind: Kind, version: str) -> None:
        self.model = model
        self.kind = kind
        self.loaded: dict[str, Any] = {}
        """By precision."""
        self.description = (
            f"llama-cpp-python {version}, {kind}, decoding only, {torch.get_num_threads()} threads; weights, keys and "
            "values are fp32 or fp16"
        )

    def decoding(self, precision: Precision, prompts: Sequence[Sequence[int]], new_tokens: int) -> Contender:
        """What writes with it."""
        name = "fp32" if DTYPES[precision.name].itemsize == 4 else "fp16"
        if name not in self.loaded:
            self.loaded[name] = load(self.model, self.kind, half=name == "fp16")
        return Contender(Entry(NAME, name), Generating(self.loaded[name], prompts, new_tokens, half=name == "fp16"))


def load(model: GPT, kind: Kind, half: bool) -> Any:
    """Our model as llama.cpp holds it; no file stays behind."""
    import llama_cpp

    logging.getLogger("llama-cpp-python").setLevel(logging.CRITICAL)  # else it tells of each tensor
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows removes no file that is mapped
        path = Path(folder) / "model.gguf"
        write_gguf(model, kind, path, half)
        loaded = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    if not loaded:
        raise RuntimeError("llama.cpp cannot read the model that was written for it")
    return loaded


class Generating:
    """Writes texts side by side.

    Args:
        model: as `load` gives it.
        prompts: token ids, all of one length.
        new_tokens: of each text.
        half: keys and values are fp16.
    """

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]], new_tokens: int, half: bool) -> None:
        import llama_cpp

        self.api: Any = llama_cpp
        self.prompts, self.new_tokens = prompts, new_tokens
        self.context = self.api.llama_init_from_model(model, self._params(half))
        if not self.context:
            raise RuntimeError("llama.cpp cannot hold these texts")
        self.batch = self.api.llama_batch_init(sum(map(len, prompts)), 0, 1)
        self.sampler = self.api.llama_sampler_init_greedy()

    def __call__(self) -> int:
        """Write them once; how many tokens they are."""
        return sum(map(len, self.texts()))

    def texts(self) -> list[list[int]]:
        """What is written after each prompt."""
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        self._decode([(token, at, row) for row, ids in enumerate(self.prompts) for at, token in enumerate(ids)])
        last = [sum(map(len, self.prompts[: row + 1])) - 1 for row in range(len(self.prompts))]
        texts: list[list[int]] = [[] for _ in self.prompts]
        for position in range(len(self.prompts[0]), len(self.prompts[0]) + self.new_tokens):
            picked = [self.api.llama_sampler_sample(self.sampler, self.context, index) for index in last]
            for text, token in zip(texts, picked, strict=True):
                text.append(token)
            if len(texts[0]) < self.new_tokens:
                self._decode([(token, position, row) for row, token in enumerate(picked)])
                last = list(range(len(picked)))
        return texts

    def _decode(self, tokens: Sequence[tuple[int, int, int]]) -> None:
        """Compute tokens, each with its position and its text; logits are of the last one of each text."""
        batch = self.batch
        batch.n_tokens = len(tokens)
        for index, (token, position, row) in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, position
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, row
            batch.logits[index] = index + 1 == len(tokens) or tokens[index + 1][2] != row
        if self.api.llama_decode(self.context, batch):
            raise RuntimeError("llama.cpp could not compute a batch")

    def _params(self, half: bool) -> Any:
        """As long a memory as the texts need, for all of them together."""
        params = self.api.llama_context_default_params()
        params.n_ctx = len(self.prompts) * (len(self.prompts[0]) + self.new_tokens)
        params.n_batch = params.n_ubatch = max(32, sum(map(len, self.prompts)))
        params.n_seq_max = len(self.prompts)
        params.kv_unified = False
        params.n_threads = params.n_threads_batch = torch.get_num_threads()
        params.type_k = params.type_v = self.api.GGML_TYPE_F16 if half else self.api.GGML_TYPE_F32
        return params
