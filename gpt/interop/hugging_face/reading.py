"""A folder of Hugging Face's as a model of ours: `hf:FOLDER`, or `hf:NAME` of a model on its Hub.

config.json, model.safetensors or the shards that model.safetensors.index.json names, tokenizer.json. Names and shapes
are compared with the configuration before a weight is read.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gpt.config import UserError, shown
from gpt.data.tokenizer import Tokenizer
from gpt.files import is_own, read_json
from gpt.interop.foreign import Foreign, checked, empty, refuse_misfit, told_of
from gpt.interop.hugging_face.architecture import Architecture
from gpt.interop.hugging_face.architectures import ARCHITECTURES
from gpt.interop.hugging_face.hub import located
from gpt.interop.hugging_face.tokenizer import read_tokenizer
from gpt.interop.hugging_face.writing import CONFIG, WEIGHTS, weights
from gpt.interop.naming import inward
from gpt.weights import TYPES, check_finite, headers

INDEX = f"{WEIGHTS}.index.json"
BUFFERS = ("*.attn.bias", "*.attn.masked_bias", "*.rotary_emb.inv_freq")
"""Tensors that older versions wrote beside the weights: masks and angles, which follow from the configuration."""
HEAD = "lm_head.weight"


class HuggingFace(Foreign):
    """A model in such a folder.

    Args:
        where: the folder, or the model's name on the Hub.

    Raises:
        UserError: it cannot be had, is of no architecture that there is here, or its weights do not fit.
    """

    def __init__(self, where: str) -> None:
        folder, name = located(where)
        theirs = read_config(folder)
        self.architecture = known(folder, theirs)
        with told_of(folder / CONFIG):
            config = checked(self.architecture.configured(theirs))
        super().__init__(f"hf:{name}", folder, config)
        self.files = self._files()
        """Of each tensor, by their name: its name in the file, and the file."""
        self._check()

    def tokenizer(self) -> Tokenizer:
        """That of tokenizer.json."""
        with told_of(self.folder):
            return read_tokenizer(self.folder)

    def weights(self) -> dict[str, Tensor]:
        """All weights by our names, fp32, on the CPU."""
        names = list(empty(self.config).state_dict())
        try:
            with ExitStack() as stack:
                opened: dict[Path, Any] = {
                    file: stack.enter_context(safe_open(file, "pt")) for _, file in self.files.values()
                }

                def read(name: str) -> Tensor:
                    in_file, file = self.files[name]
                    tensor: Tensor = opened[file].get_tensor(in_file)
                    return tensor

                found = inward(names, read, self.architecture.rows, self.config)
                if self.config.tied and HEAD in self.files and not torch.equal(read(HEAD).float(), found[names[0]]):
                    raise UserError(
                        f"run: {self.folder}: {HEAD} is not the embedding, and tie_word_embeddings is true; set it to "
                        "false if the head shall be its own"
                    )
        except (SafetensorError, OSError) as error:
            raise UserError(f"run: {self.folder}: the weights cannot be read ({error}); get the files again") from None
        check_finite(found, self.folder)
        return found

    def _files(self) -> dict[str, tuple[str, Path]]:
        """Of each weight, by their name, its name in the file and the file."""
        found = {name: file for file in shards(self.folder) for name in headers(file)}
        named = {name: file for name, file in found.items() if not any(fnmatch(name, buffer) for buffer in BUFFERS)}
        base = f"{self.architecture.base}."
        bare = not any(name.startswith(base) for name in named)
        return {f"{base}{name}" if bare and name != HEAD else name: (name, file) for name, file in named.items()}

    def _check(self) -> None:
        """Compare types, names and shapes with the configuration."""
        if self.config.n_layer > len(self.files):
            raise UserError(f"run: {self.folder}: the weights do not hold the {self.config.n_layer} layers of {CONFIG}")
        read = {file: headers(file) for _, file in self.files.values()}
        found = {name: read[file][in_file] for name, (in_file, file) in self.files.items()}
        for name, (kind, _) in found.items():
            if kind not in TYPES:
                raise UserError(f"run: {self.folder}: {name} is of type {kind}; {', '.join(sorted(TYPES))} can be read")
        wanted = weights(self.architecture, empty(self.config))
        shapes = {name: shape for name, (_, shape) in found.items() if not (self.config.tied and name == HEAD)}
        refuse_misfit(self.folder, shapes, {name: tuple(tensor.shape) for name, tensor in wanted.items()})


def read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    if folder.is_dir() and not (folder / CONFIG).exists():
        raise UserError(f"run: {folder} holds no {CONFIG}; name a folder that transformers wrote")
    with told_of(folder):
        return read_json(folder / CONFIG)


def known(folder: Path, theirs: Mapping[str, Any]) -> Architecture:
    """The architecture of a configuration.

    Raises:
        UserError: it is none of those that there are.
    """
    kind = theirs.get("model_type")
    for architecture in ARCHITECTURES.values():
        if kind == architecture.kind:
            return architecture
    raise UserError(
        f"run: {folder / CONFIG}: model_type is {shown(kind)}, which no model here has; {', '.join(ARCHITECTURES)} "
        "can be read"
    )


def shards(folder: Path) -> list[Path]:
    """The files of the weights.

    Raises:
        UserError: there are none, or only pickles; the index names what is not there, or not in the folder.
    """
    if is_own(folder / WEIGHTS):
        return [folder / WEIGHTS]
    if not (folder / INDEX).exists():
        pickles = sorted(path.name for path in folder.glob("*.bin"))
        if pickles:
            raise UserError(
                f"run: {folder / pickles[0]} is a pickle, which may run code, and is never loaded; get the model as "
                "safetensors, or have transformers write it anew: save_pretrained"
            )
        raise UserError(f"run: {folder} holds no {WEIGHTS}; name a folder that transformers wrote")
    with told_of(folder):
        named = read_json(folder / INDEX).get("weight_map")
    names = sorted({*map(str, named.values())}) if isinstance(named, dict) else []
    for name in names or ["a shard"]:
        if Path(name).name != name or not is_own(folder / name):
            raise UserError(f"run: {folder / INDEX} names {shown(name)}, which is no file there; get the files again")
    return [folder / name for name in names]
