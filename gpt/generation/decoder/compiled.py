"""The step compiled ahead of time: one program for every length of a text, and for every model of a shape.

A program is exported, compiled by AOTInductor and kept in PyTorch's cache folder without the weights, which are given
to it when it is loaded: that takes some milliseconds. Sizes are part of it, but for the number of tokens seen, so no
key is read that is not seen, and nothing is compiled anew while a text grows. Only the number of rows, and whether they
are padded, make a program of their own.
"""

import json
import os
import platform
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache as cached
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from gpt.device import keep_compiled
from gpt.generation.decoder import Decoder
from gpt.model.cache import Cache
from gpt.model.cache.static import StaticMemory
from gpt.model.gpt import GPT
from gpt.model.mask import Where

LONG = 128
"""Tokens that are seen where a program is made: what pays for a text so long, such as sharing it out, is done."""

MORE = 2
"""Added to the number of tokens seen where it is a size: PyTorch takes a size of 0 or 1 for one that never changes."""

OPTIONS: dict[str, Any] = {
    "aot_inductor.package_constants_in_so": False,
    "always_keep_tensor_constants": True,  # else short weights, up to 8, are written into the program
    "memory_planning": True,  # one allocation for all that is computed on the way
    "cpp.enable_floating_point_contract_flag": "fast",  # x · w + sum in one instruction
}


class Step(nn.Module):
    """What is compiled.

    Args:
        model: what was prepared for it.
    """

    def __init__(self, model: GPT) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: Tensor, seen: Tensor, where: list[Tensor], held: list[list[Tensor]]) -> Tensor:
        """The logits of (rows, 1) tokens, `MORE` + as many tokens seen being the size of `seen`; `where` may be empty.

        Keys, values and where they are, of each layer, are written to what is `held`.
        """
        length = seen.size(0) - MORE
        cache = Cache([StaticMemory.over(tensors, length) for tensors in held])
        cache.length = length
        hidden = self.model.hidden(token, Where(*where) if where else None, cache)
        return self.model.logits(hidden[:, -1])


class Compiled(Decoder):
    """For models that keep every key and value.

    Args:
        model: what was prepared for it.
        layout: the name of how.
        told: what it is, in a few words.
    """

    def __init__(self, model: GPT, layout: str, told: str = "compiled") -> None:
        super().__init__(model, told)
        self.layout = layout
        self.weights = {f"model.{name}": tensor for name, tensor in model.named_buffers()} | {
            f"model.{name}": parameter.data for name, parameter in model.named_parameters(remove_duplicate=False)
        }
        self._programs: dict[tuple[int, bool], Any] = {}

    def __call__(self, token: Tensor, where: Where | None, cache: Cache) -> Tensor:
        """See one more token, (rows, 1), after those in the cache: (rows, vocab_size) logits."""
        key = (token.size(0), where is not None)
        if key not in self._programs:
            self._programs[key] = self.load(*key)
        seen = token.new_empty(MORE + cache.length, dtype=torch.bool)
        memories = [memory for memory in cache.memories if isinstance(memory, StaticMemory)]
        held = [tensor for memory in memories for tensor in memory.held]
        # The loader takes tensors as they come; the program itself would look for them in its arguments at each call.
        logits: Tensor = self._programs[key].loader.boxed_run([token, seen, *(where or ()), *held])[0]
        for memory in memories:
            memory.length += 1
        cache.advance(1, where)
        return logits

    def room(self, tokens: int) -> int:
        """The whole context, whatever is needed, so that no size changes; and one more, so that no slice is all of it.

        What is not used takes no memory.
        """
        return self.model.config.context + 1

    def load(self, rows: int, padded: bool) -> Any:
        """The program, compiled where it is not kept or cannot be read."""
        path = kept_at(self.model, self.layout, rows, padded)
        if path.exists():
            with suppress(RuntimeError, OSError):
                return self._open(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.pt2")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, about its own
            program = export(self.model, rows, padded)
            torch._inductor.aoti_compile_and_package(program, package_path=str(part), inductor_configs=dict(OPTIONS))
        given = torch._inductor.aoti_load_package(str(part)).get_constant_fqns()
        if missing := left_out(taken(program), given, self.weights):
            part.unlink()
            raise RuntimeError(f"{min(missing)} became a part of the program")
        part.replace(path)
        return self._open(path)

    def _open(self, path: Path) -> Any:
        program = torch._inductor.aoti_load_package(str(path), run_single_threaded=True)
        wanted = {name: self.weights[name] for name in program.get_constant_fqns()}
        program.load_constants(wanted, check_full_update=True, user_managed=True)
        return program


def kept_at(model: GPT, layout: str, rows: int, padded: bool) -> Path:
    """Where the program of a model is kept, once it is prepared in a layout; to know it, nothing is prepared."""
    keep_compiled()  # before PyTorch's compiler is imported, which settles its folder
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return Path(cache_dir()) / "decoders" / f"{fingerprint(model, layout, rows, padded)}.pt2"


def supports(model: GPT) -> bool:
    """Whether a model's step can be compiled: what it remembers grows by a token, and more than once."""
    memories = model.build_cache(1).memories
    return model.config.context > MORE and all(isinstance(memory, StaticMemory) for memory in memories)


def export(model: GPT, rows: int, padded: bool) -> ExportedProgram:
    """The step of a prepared model as a graph in which the number of tokens seen is open."""
    context = model.config.context
    cache, token = model.build_cache(context + 1), torch.zeros(rows, 1, dtype=torch.int64)
    token = token.to(model.embedding.weight.device)
    where = Where(token.clone(), token.clone()) if padded else None  # what is one here would be one in the program
    with torch.inference_mode(False), torch.no_grad():
        model.hidden(token, where, cache)  # makes what the cache holds
        held = [memory.held for memory in cache.memories if isinstance(memory, StaticMemory)]
        seen = token.new_empty(MORE + min(LONG, context - 1), dtype=torch.bool)
        more = Dim("seen", min=MORE + 1, max=MORE + context - 1)
        open_sizes = (None, {0: more}, [None] * len(where or ()), [[None] * len(tensors) for tensors in held])
        return torch.export.export(
            Step(model), (token, seen, list(where or ()), held), dynamic_shapes=open_sizes, strict=False
        )


def taken(program: ExportedProgram) -> set[str]:
    """Names of the weights that a program computes with."""
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    return {names[node.name] for node in program.graph.nodes if node.name in names and node.users}


def left_out(taken: Iterable[str], given: Iterable[str], weights: Mapping[str, Tensor]) -> set[str]:
    """Those of the weights taken that no program asks for, by their name or that of another that is the same tensor.

    >>> tied, gain = torch.ones(2), torch.ones(2)
    >>> left_out(["head", "gain"], ["embedding"], {"embedding": tied, "head": tied, "gain": gain})
    {'gain'}
    """
    there = {weights[name].data_ptr() for name in given}
    return {name for name in taken if weights[name].data_ptr() not in there}


def fingerprint(model: GPT, layout: str, rows: int, padded: bool) -> str:
    """What a program depends on, but for the weights' numbers."""
    weight = model.embedding.weight
    device, kind = weight.device, [str(weight.dtype), layout, rows, padded]
    machine = processor() if device.type == "cpu" else torch.cuda.get_device_name(device)
    what = [model.config.model_dump(mode="json"), kind, OPTIONS, machine, torch.get_num_threads()]
    return sha256(json.dumps([what, torch.__version__, sources()]).encode()).hexdigest()[:32]


@cached
def sources() -> str:
    """The code that is compiled: all of the model's, and of the decoders'."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *(here.parents[1] / "model").rglob("*.py")])
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cached
def processor() -> str:
    """Name and abilities of the processor: code for one may be wrong for another that sees the same folder."""
    with suppress(OSError):
        lines: Sequence[str] = Path("/proc/cpuinfo").read_text().splitlines()
        return "".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU"))}))
    return platform.machine() + platform.processor()
