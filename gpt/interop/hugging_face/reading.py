"""A folder of Hugging Face's as a model of ours: `hf:FOLDER`, or `hf:NAME` of a model on its Hub.

config.json, model.safetensors or the shards that model.safetensors.index.json names, tokenizer.json. Names and shapes
are compared with the configuration before a weight is read. A file may be a link, as all are in the Hub's cache.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from gpt.config import UserError, shown
from gpt.data.tokenizer import Tokenizer
from gpt.files import read_json
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
HEAD, EMBEDDING = "lm_head.weight", "embedding.weight"
"""Their head, our embedding."""


class Entry(NamedTuple):
    """Where a tensor lies, and what it is by the file's header."""

    file: Path
    name: str
    """In the file."""
    type: str
    shape: tuple[int, ...]


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
        self.entries = entries(folder, self.architecture.base)
        self._check()

    def tokenizer(self) -> Tokenizer:
        """That of tokenizer.json."""
        with told_of(self.folder):
            return read_tokenizer(self.folder)

    def weights(self) -> dict[str, Tensor]:
        """All weights by our names, fp32, on the CPU."""
        names = list(empty(self.config).state_dict())
        with self._reader() as read:
            found = inward(names, read, self.architecture.rows, self.config)
            if self.config.tied and HEAD in self.entries and not torch.equal(read(HEAD).float(), found[EMBEDDING]):
                raise UserError(
                    f"run: {self.folder}: {HEAD} is not the embedding, and tie_word_embeddings is true; set it to "
                    "false if the head shall be its own"
                )
        check_finite(found, self.folder)
        return found

    @contextmanager
    def _reader(self) -> Iterator[Callable[[str], Tensor]]:
        """What reads a tensor by its name; the files are open meanwhile."""
        try:
            with ExitStack() as stack:
                files = {entry.file for entry in self.entries.values()}
                opened: dict[Path, Any] = {file: stack.enter_context(safe_open(file, "pt")) for file in files}
                yield lambda name: opened[self.entries[name].file].get_tensor(self.entries[name].name)
        except (SafetensorError, OSError) as error:
            raise UserError(f"run: {self.folder}: the weights cannot be read ({error}); get the files again") from None

    def _check(self) -> None:
        """Compare types, names and shapes with the configuration."""
        if self.config.n_layer > len(self.entries):
            raise UserError(f"run: {self.folder}: the weights do not hold the {self.config.n_layer} layers of {CONFIG}")
        for name, entry in self.entries.items():
            if entry.type not in TYPES:
                listed = ", ".join(sorted(TYPES))
                raise UserError(f"run: {self.folder}: {name} is of type {entry.type}; {listed} can be read")
        found = {name: entry.shape for name, entry in self.entries.items() if not (self.config.tied and name == HEAD)}
        wanted = weights(self.architecture, empty(self.config))
        refuse_misfit(self.folder, found, {name: tuple(tensor.shape) for name, tensor in wanted.items()})


def entries(folder: Path, base: str) -> dict[str, Entry]:
    """The tensors of all files, by the names that they have where none leaves out its beginning; none is read.

    Raises:
        UserError: a file is missing or damaged.
    """
    found = [Entry(file, name, *header) for file in shards(folder) for name, header in headers(file).items()]
    named = {entry.name: entry for entry in found if not any(fnmatch(entry.name, buffer) for buffer in BUFFERS)}
    bare = not any(name.startswith(f"{base}.") for name in named)
    return {f"{base}.{name}" if bare and name != HEAD else name: entry for name, entry in named.items()}


def read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json.

    Raises:
        UserError: there is none, or it cannot be read.
    """
    if folder.is_dir() and not (folder / CONFIG).exists():
        raise UserError(f"run: {folder} holds no {CONFIG}; name a folder that transformers wrote")
    with told_of(folder):
        return read_json((folder / CONFIG).resolve())


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
    if (folder / WEIGHTS).is_file():
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
        named = read_json((folder / INDEX).resolve()).get("weight_map")
    names = sorted({*map(str, named.values())}) if isinstance(named, dict) else []
    for name in names or ["a shard"]:
        if Path(name).name != name or not (folder / name).is_file():
            raise UserError(f"run: {folder / INDEX} names {shown(name)}, which is no file there; get the files again")
    return [folder / name for name in names]
