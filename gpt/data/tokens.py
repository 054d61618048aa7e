"""Documents -> token files: made once, memory-mapped, found again by text and tokenizer settings.

Prepared tokens are one folder: `train.bin` and `validation.bin`, the tokenizer's `vocabulary.json`, and
`prepared.json`, which says how much of everything there must be. The folder is written aside, synced and renamed: it is
whole, or it is not there.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gpt.config import Config, RunError, UserError, parse
from gpt.data import token_file
from gpt.data.dataset import SPLITS, Dataset, Document, Split
from gpt.data.progress import bar, watched
from gpt.data.source.holdout import by_tail
from gpt.data.token_file import LARGEST_GROUP, Counts, TokenFile
from gpt.data.tokenizer import FILE as VOCABULARY
from gpt.data.tokenizer import Tokenizer, TokenizerConfig, load
from gpt.files import is_full, read_json, sync, workshop

SIDECAR = "prepared.json"

VERSION = 2
"""Of all that is prepared: raised with any change of its files or of how tokenizers learn or split."""


class Sidecar(Config):
    """The content of `prepared.json`."""

    text: str
    """What the text is, for people."""
    vocabulary: str
    """A hash of `vocabulary.json`, in hex: ids mean nothing without it."""
    train: Counts
    validation: Counts


@dataclass(frozen=True)
class Prepared:
    """A dataset's tokens, and the tokenizer that made them."""

    description: str
    """What the text is, for people."""
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile | None
    """None where the dataset holds nothing out."""
    fingerprint: str
    """What they are found by: another text, or another way to tokenize it, has another one."""

    def capped(self, tokens: int | None) -> "Prepared":
        """The same, of whose validation split only so many tokens count, from the first on; None: all."""
        if self.validation is None or tokens is None or tokens >= len(self.validation):
            return self
        note = f"; evaluations cover the first {tokens:,} of {len(self.validation):,} validation tokens"
        return replace(self, validation=self.validation.first(tokens), description=self.description + note)


def prepare(
    dataset: Dataset,
    tokenizer: TokenizerConfig | Tokenizer,
    folder: Path,
    check: Callable[[Prepared], None] | None = None,
    check_fingerprint: Callable[[str], None] | None = None,
) -> Prepared:
    """The dataset's tokens, from an earlier preparation of the same text and settings or made now.

    Several processes may do so at once: the first that is done is taken by all. An interruption, of whatever
    kind, leaves nothing that a later call takes for prepared. Memory does not grow with the dataset.

    Args:
        dataset: the text.
        tokenizer: what to build from its documents, or one that there is already.
        folder: where prepared tokens live; made where it is not there.
        check: refuses, by raising, tokens that are of no use; those made now are not kept then.
        check_fingerprint: refuses, by raising, what is not found by the right fingerprint, before anything is made.

    Raises:
        UserError: text that cannot be read; the folder cannot be made or written; what was prepared earlier is damaged.
        RunError: there is no room for the tokens.
    """
    check = check or (lambda _: None)
    found_by = fingerprint(dataset, tokenizer)
    if check_fingerprint:
        check_fingerprint(found_by)
    whole = place_of(dataset, tokenizer, folder, found_by)
    if not whole.exists():
        try:
            make(dataset, tokenizer, found_by, whole, check)
        except OSError as error:
            if not is_full(error):
                raise
            raise RunError(f"{folder}: no room is left for the tokens; make some, or train on less text") from None
    prepared = open_prepared(whole, dataset.describe(), found_by)
    check(prepared)
    return prepared


def make(
    dataset: Dataset,
    tokenizer: TokenizerConfig | Tokenizer,
    found_by: str,
    whole: Path,
    check: Callable[[Prepared], None],
) -> None:
    """Prepare the tokens aside, and give them their name if they pass the check."""
    folder = whole.parent
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            aside = stack.enter_context(workshop(folder, ".preparing-")) / whole.name
            aside.mkdir()
        except OSError as error:
            raise UserError(
                f"{folder}: prepared tokens cannot be kept there: {error.strerror}; have it writable"
            ) from None
        fill(aside, dataset, tokenizer)
        check(open_prepared(aside, dataset.describe(), found_by))
        publish(aside, whole)


def place_of(
    dataset: Dataset, tokenizer: TokenizerConfig | Tokenizer, folder: Path, found_by: str | None = None
) -> Path:
    """Where a dataset's prepared tokens are, or would be; as of `prepare`; `found_by`: their fingerprint, if known."""
    return folder / f"{dataset.name}-{tokenizer.name}-{(found_by or fingerprint(dataset, tokenizer))[:16]}"


def fingerprint(dataset: Dataset, tokenizer: TokenizerConfig | Tokenizer) -> str:
    """What prepared tokens are found by: all that they depend on."""
    tokenized_by = tokenizer.saved() if isinstance(tokenizer, Tokenizer) else tokenizer.fingerprint()
    depends = [VERSION, dataset.fingerprint(), dataset.max_tokens, tokenized_by]
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def fill(folder: Path, dataset: Dataset, tokenizer: TokenizerConfig | Tokenizer) -> None:
    """Write a split's tokens after the other, and what belongs to them; `prepared.json` comes last."""
    if isinstance(tokenizer, TokenizerConfig):
        tokenizer = tokenizer.build(partial(to_learn_from, dataset, f"{tokenizer.name} tokenizer"))
    tokenizer.save(folder)
    counts = {}
    for split in SPLITS:
        limit = dataset.max_tokens if split == "train" else None
        with bar(f"{split} tokens", dataset.size(split)) as advance:
            path = folder / f"{split}.bin"
            counts[split] = token_file.write(path, dataset.documents(split), tokenizer, limit, advance)
    sidecar = Sidecar(text=dataset.describe(), vocabulary=hash_of(folder / VOCABULARY), **counts)
    text = sidecar.model_dump_json(indent=2) + "\n"
    (folder / SIDECAR).write_text(text, encoding="utf-8")


def to_learn_from(dataset: Dataset, doing: str, split: Split) -> Iterator[Document]:
    """A split's documents as a tokenizer reads them, with a bar; no more of them than training may read.

    A token is hardly less than a character, so `max_tokens` characters are as many as matter; but what a thread encodes
    at once is encoded as a whole, and no character of it may be unknown.
    """
    documents = dataset.documents(split)
    if split == "train" and dataset.max_tokens is not None:
        documents = by_tail(documents, dataset.max_tokens + LARGEST_GROUP, "train")
    return watched(documents, doing, dataset.size(split))


def hash_of(file: Path) -> str:
    """The SHA-256 of a file, in hex; '' where there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def publish(aside: Path, whole: Path) -> None:
    """Give a finished folder its name, unless another process has given it to its own, which is the same."""
    for path in [*aside.iterdir(), aside]:
        sync(path)
    try:
        aside.rename(whole)
    except OSError:
        if not whole.exists():
            raise
    else:
        sync(whole.parent)


def open_prepared(folder: Path, description: str, found_by: str) -> Prepared:
    """Tokens that were prepared earlier, their tokenizer and sizes checked.

    Raises:
        UserError: a file is missing, damaged or of another size.
    """
    try:
        sidecar = parse(Sidecar, read_json(folder / SIDECAR), str(folder / SIDECAR))
        if sidecar.vocabulary != hash_of(folder / VOCABULARY):
            raise UserError(f"{folder / VOCABULARY}: its content has changed")
        tokenizer = load(folder)
    except UserError as error:
        raise UserError(f"{error}; delete {folder} and its tokens are prepared anew") from None
    train, validation = (
        TokenFile(folder / f"{split}.bin", counts, tokenizer.vocab_size)
        for split, counts in (("train", sidecar.train), ("validation", sidecar.validation))
    )
    train.check_size()
    validation.check_size()
    return Prepared(description, tokenizer, train, validation if validation.counts.documents else None, found_by)
