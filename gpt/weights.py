"""What a checkpoint's safetensors files hold -> a model, and tensors for its optimizer.

Names and shapes are compared with what the model has before anything is allocated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from gpt.checkpoint import CONFIG, OPTIMIZER, WAY_OUT, WEIGHTS, read_file
from gpt.config import UserError, parse
from gpt.data.tokenizer import Tokenizer
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT

TYPES = {"F16", "BF16", "F32", "F64"}
"""Of the numbers in a tensor, as safetensors calls them."""
ANOTHER = "get the files again, or take another model"
LARGEST = 65504.0
"""Of a weight: fp16 holds no larger number. Trained ones are nowhere near, and products of larger ones are soon not
finite in any precision."""


def load_model(folder: Path, device: torch.device) -> tuple[GPT, dict[str, Any]]:
    """The model in evaluation mode, and the settings that it was trained with.

    The module is laid out without memory first and compared with what the file holds, so that a file that does not fit
    its configuration is refused before anything is allocated.

    Raises:
        UserError: configuration or weights that are damaged, or do not fit one another.
    """
    settings = read_file(folder, CONFIG)
    config = model_config(folder / CONFIG, settings)
    if config.n_layer > len(stored_shapes(folder)):
        raise UserError(f"run: {folder / WEIGHTS} does not hold the {config.n_layer} layers of its configuration")
    with torch.device("meta"):
        model = GPT(config)
    check_shapes(folder, model)
    model.load_state_dict(load_weights(folder, device), assign=True)
    return model.eval(), settings


def load_weights(folder: Path, device: torch.device) -> dict[str, Tensor]:
    """The weights by parameter name.

    Args:
        folder: the checkpoint's.
        device: where the weights shall be.

    Raises:
        UserError: the file is damaged, or they are not finite.
    """
    stored_shapes(folder)
    weights = {_plain_name(name): t for name, t in load_file(folder / WEIGHTS, device=str(device)).items()}
    check_finite(weights, folder / WEIGHTS, WAY_OUT)
    return weights


def check_finite(weights: Mapping[str, Tensor], path: Path, way_out: str = ANOTHER) -> None:
    """Refuse weights that a model could not compute with.

    Args:
        weights: by any names.
        path: where they are from.
        way_out: what to do.

    Raises:
        UserError: one of them is not finite, or too large.
    """
    for tensor in weights.values():
        least, most = tensor.aminmax()
        if not (least >= -LARGEST and most <= LARGEST):  # also where one is NaN
            raise UserError(f"run: the weights in {path} are not all finite numbers up to {LARGEST:,.0f}; {way_out}")


def check_shapes(folder: Path, model: GPT) -> None:
    """Refuse weights that have other names and shapes than the model; no weight is read.

    Args:
        folder: the checkpoint's.
        model: may be on meta.

    Raises:
        UserError: they do, or the file is damaged.
    """
    shapes = stored_shapes(folder)
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if shapes != wanted:
        names = sorted(name for name in shapes.keys() | wanted.keys() if shapes.get(name) != wanted.get(name))
        raise UserError(
            f"run: the weights in {folder / WEIGHTS} do not have the names and shapes of the configuration, "
            f"{names[0]} for one: {shapes.get(names[0], 'not there')} and {wanted.get(names[0], 'not there')}; give "
            "the model the sizes and parts that it was trained with"
        )


def check_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer with more tokens than the weights have rows for.

    Raises:
        UserError: it has, or the file of the weights is damaged.
    """
    check_rows(folder, tokenizer, next(iter(stored_shapes(folder).get("embedding.weight", ())), 0), WAY_OUT)


def check_rows(folder: Path, tokenizer: Tokenizer, rows: int, way_out: str = ANOTHER) -> None:
    """Refuse a tokenizer with more tokens than a table has rows.

    Raises:
        UserError: it has.
    """
    if tokenizer.vocab_size > rows:
        raise UserError(
            f"run: the tokenizer in {folder} has {tokenizer.vocab_size} tokens, the weights have {rows}: they do not "
            f"belong together; {way_out}"
        )


def load_optimizer(folder: Path) -> dict[str, Tensor]:
    """What `write` was given as the optimizer's state, on the CPU.

    Raises:
        UserError: the file is damaged.
    """
    check_optimizer(folder)
    return load_file(folder / OPTIMIZER)


def check_optimizer(folder: Path) -> None:
    """Refuse a damaged file of the optimizer's state, none of which is read.

    Raises:
        UserError: it is.
    """
    _shapes(folder / OPTIMIZER)


def stored_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The names and shapes of a checkpoint's weights, none of which is read.

    Raises:
        UserError: the file is damaged, or holds something else than fractional numbers.
    """
    return _shapes(folder / WEIGHTS)


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the tensors in a file, which is read no further than that.

    Raises:
        UserError: the file is damaged, or holds something else than fractional numbers.
    """
    found = headers(file, WAY_OUT)
    for name, (kind, _) in found.items():
        if kind not in TYPES:
            raise UserError(f"run: {file}: {name} is of type {kind}, no tensor of a run; {WAY_OUT}")
    return {_plain_name(name): shape for name, (_, shape) in found.items()}


def headers(file: Path, way_out: str = ANOTHER) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The types and shapes of the tensors in a file, by name; it is read no further than that.

    Raises:
        UserError: the file is damaged.
    """
    try:
        with safe_open(file, framework="pt") as tensors:
            slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118 - it is no mapping
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except (SafetensorError, OSError) as error:
        raise UserError(f"run: {file} cannot be read ({error}); {way_out}") from None


def model_config(path: Path, settings: Mapping[str, Any]) -> GPTConfig:
    """The model that settings which stand in the file `path` describe.

    Raises:
        UserError: they describe none.
    """
    model = settings.get("model")
    if not isinstance(model, dict) or model.get("vocab_size") is None:
        raise UserError(f"run: {path} describes no model; {WAY_OUT}")
    try:
        return parse(GPTConfig, model, "model")
    except UserError as error:
        raise UserError(f"run: {path}: {error}; {WAY_OUT}") from None


def _plain_name(name: str) -> str:
    """A parameter's name without the prefixes that torch.compile and DistributedDataParallel add."""
    return name.removeprefix("module.").removeprefix("_orig_mod.").removeprefix("module.")
