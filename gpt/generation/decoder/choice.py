"""Which decoder writes: compiled where that was asked for and works, or pays; else weights prepared for few rows."""

import math
import warnings
from collections.abc import Callable

import torch

from gpt.config import RunError, UserError
from gpt.device import CompileMode, has_native_bf16
from gpt.generation.decoder import Decoder
from gpt.generation.decoder.compiled import LONG, Compiled, kept_at, supports
from gpt.generation.decoder.prepared import (
    Layout,
    Packed,
    Quantize,
    Tiles,
    check_quantize,
    int8,
    int8_tiles,
    linear,
    prepared,
)
from gpt.model.gpt import GPT
from gpt.model.mask import Where

TOLERANCE = {"fp32": 1e-5, "bf16": 0.05, "fp16": 0.02, "int8": 0.1}
"""How far a logit may be from the uncached fp32 model's, as a share of the largest: two closer ones may change places.
"""

COMPILING = 2.5
"""Seconds that compiling takes for each layer, where nothing of it is in PyTorch's cache yet."""

EAGER, READ = 0.0003, 2e10
"""Seconds that an eager step takes for the calls of a layer, and the bytes of weights that it reads in a second."""

SAVES = 0.4
"""Of an eager step's time, what a compiled one saves at least."""

TRIED = 8
"""Steps after which what was compiled is believed."""

FEW = 2
"""Rows up to which compiled sums are faster than a matrix product."""


class Decoding:
    """The decoders of a model, each made when it is first needed, and kept.

    Args:
        model: on its device, in its precision.
        compile: off; auto where it repays itself; on; strict.
        quantize: int8, or None: the weights as they are.

    Raises:
        UserError: quantize, on a device that cannot; strict, for an attention that cannot.
    """

    def __init__(self, model: GPT, compile: CompileMode = "off", quantize: Quantize | None = None) -> None:
        check_quantize(quantize, model.embedding.weight.device)
        self.model, self.compile, self.quantize = model, compile, quantize
        self.cannot = not supports(model)
        if self.cannot and compile == "strict":
            name = model.config.attention.name
            raise UserError(f"compile: strict, but what {name} remembers cannot be compiled; take compile=on or off")
        self.told = ""
        """Which decoder was given last, and why."""
        self.announce: Callable[[str], None] = lambda _: None
        """Is told what takes long, before it does."""
        self._eager: dict[bool, Decoder] = {}
        self._compiled: dict[bool, Compiled] = {}
        self._checked: dict[tuple[int, bool], bool] = {}

    def decoder(self, rows: int, padded: bool, steps: int) -> Decoder:
        """One for `rows` texts side by side, of different lengths where `padded`, that will see `steps` more tokens.

        Raises:
            RunError: strict, and compiling failed or gave other logits.
        """
        eager = self._prepared(rows)
        if self.compile == "off":
            return self._tell(eager)
        if self.cannot:
            return self._tell(eager, f"what {self.model.config.attention.name} remembers cannot be compiled")
        if (rows, padded) not in self._checked:
            repaid = repaid_after(self.model)
            if self.compile == "auto" and steps < repaid and not self._kept(rows, padded):
                return self._tell(eager, f"auto: compiling would repay itself after {repaid:,} tokens")
            self._checked[rows, padded] = self._works(eager, rows, padded)
        if self._checked[rows, padded]:
            return self._tell(self._compile(rows))
        return self._tell(eager, "compiling failed")

    def _tell(self, decoder: Decoder, why: str = "") -> Decoder:
        self.told = decoder.told + (f" ({why})" if why else "")
        return decoder

    def _prepared(self, rows: int) -> Decoder:
        if (rows == 1) not in self._eager:
            self._eager[rows == 1] = prepare(self.model, rows, self.quantize)
        return self._eager[rows == 1]

    def _kept(self, rows: int, padded: bool) -> bool:
        layout = compiled_layout(self.model, rows, self.quantize)
        return kept_at(self.model, layout.__name__, rows, padded).exists()

    def _compile(self, rows: int) -> Compiled:
        if (rows <= FEW) not in self._compiled:
            self._compiled[rows <= FEW] = compile_decoder(self.model, rows, self.quantize)
        return self._compiled[rows <= FEW]

    def _works(self, eager: Decoder, rows: int, padded: bool) -> bool:
        """Compile, and compare the first logits with the eager ones."""
        compiled = self._compile(rows)
        if not self._kept(rows, padded):
            seconds = COMPILING * self.model.config.n_layer
            self.announce(f"compiling, about {seconds:.0f} s; it is kept for all models of this shape")
        problem = difference(compiled, eager, rows, padded)
        if problem is None:
            return True
        if self.compile == "strict":
            raise RunError(f"compile: strict, but compiling failed ({problem}); take compile=on or off")
        warnings.warn(f"compiling failed, going on without ({problem})", stacklevel=2)
        return False


def repaid_after(model: GPT) -> int:
    """The number of steps that save as much time as compiling takes: estimated, so that no clock decides of a text."""
    layers, weights = model.config.n_layer, sum(parameter.nbytes for parameter in model.parameters())
    return math.ceil(COMPILING * layers / (SAVES * (EAGER * layers + weights / READ)))


def prepare(model: GPT, rows: int, quantize: Quantize | None) -> Decoder:
    """The eager decoder of a model for so many rows."""
    weight = model.embedding.weight
    name = str(weight.dtype).removeprefix("torch.")
    if quantize:
        return Decoder(prepared(model, int8), "eager, int8")
    if packs(weight, rows):
        return Decoder(prepared(model, Packed), f"eager, prepacked {name}")
    return Decoder(prepared(model, linear), f"eager, {name}")


def packs(weight: torch.Tensor, rows: int) -> bool:
    """Whether oneDNN's packed products are the faster ones: in bf16, or for several rows; one in fp32 is not."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    return rows > 1 if weight.dtype == torch.float32 else has_native_bf16(weight.device)


def compile_decoder(model: GPT, rows: int, quantize: Quantize | None) -> Compiled:
    """The compiled decoder of a model for so many rows; compiling itself waits for the first step."""
    name = quantize or str(model.embedding.weight.dtype).removeprefix("torch.")
    layout = compiled_layout(model, rows, quantize)
    return Compiled(prepared(model, layout), layout.__name__, f"compiled, {name}")


def compiled_layout(model: GPT, rows: int, quantize: Quantize | None) -> Layout:
    """What the matrices are laid out in to be compiled for so many rows."""
    if rows <= FEW and model.embedding.weight.device.type == "cpu":
        return int8_tiles if quantize else Tiles
    return int8 if quantize else linear


@torch.inference_mode()
def tried(decoder: Decoder, model: GPT, rows: int, padded: bool) -> torch.Tensor:
    """The logits of a few steps after a text, (steps, rows, vocab_size): of more than one length."""
    steps = min(TRIED, model.config.context - 1)
    before = min(LONG, model.config.context - steps)
    cache, text = model.build_cache(decoder.room(before + steps)), torch.zeros(rows, before, dtype=torch.int64)
    text = text.to(model.embedding.weight.device)
    position = torch.arange(before, device=text.device).expand(rows, -1)
    model.hidden(text, Where(position, text) if padded else None, cache)
    token = text[:, :1]
    places = [Where(token + before + step, token) if padded else None for step in range(steps)]
    return torch.stack([decoder(token + step % 2, where, cache) for step, where in enumerate(places)])


def difference(compiled: Decoder, eager: Decoder, rows: int, padded: bool) -> str | None:
    """What is wrong with compiled logits, None where nothing is; a missing C++ compiler shows itself here."""
    try:
        ours = tried(compiled, eager.model, rows, padded)
    except Exception as error:
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    truth = tried(eager, eager.model, rows, padded)
    far = ((ours - truth).abs().max() / truth.abs().max().clamp(min=1e-6)).item()
    return None if far <= TOLERANCE["bf16"] else f"its first logits are off by {far:.0%}"
