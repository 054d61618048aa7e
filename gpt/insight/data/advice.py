"""Numbers -> sentences: what a person should know before an hour is spent, and what to do about it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpt.insight.data.characters import unseen, visible
from gpt.insight.data.look import Look

FEW_WINDOWS = 8
"""An evaluation of fewer windows is mostly chance."""

WORN_OUT = 16
"""Repetitions from which a text teaches next to nothing (Muennighoff et al. 2023, section 6.1)."""

FRESH = 4
"""Repetitions up to which a text teaches almost as much as a new one (the same)."""

SHARED = 0.02
"""Of the validation text: if more of it stands in the training text, the loss flatters."""

SELDOM = 10
"""Sightings, fewer of which teach a token's embedding little."""

SMALL_VOCABULARY = 512
"""Tokens: bytes and letters cost nothing, whether they occur or not."""

SHORT_LINE = 40
"""Characters that no line of prose stays below for long."""

MANY_LINES = 100
"""Line ends, from which a text is more than a page."""

HUGE_LINE = 100_000
"""Characters of a line that tools which work by the line choke on."""


class Advice(NamedTuple):
    """A sentence or two."""

    warns: bool
    """Something should be done; else it is good to know."""
    text: str


def advise(look: Look) -> list[Advice]:
    """All that is to be said of a text, warnings before the rest."""
    said = [advice for rule in RULES for advice in rule(look)]
    return sorted(said, key=lambda advice: not advice.warns)


def validation(look: Look) -> Iterator[Advice]:
    """Is there enough to judge by?"""
    e = look.exposure
    if not e.validation_windows:
        yield Advice(
            True,
            "There is no validation text, so nothing will tell whether the model learns or only memorises: hold "
            "some out, a tenth say (see the dataset's settings in --help).",
        )
    elif e.validation_windows < FEW_WINDOWS:
        yield Advice(
            True,
            f"Validation fills {number(e.validation_windows, 'window')} of {e.context} tokens, so its loss is mostly "
            "chance: hold out more (dataset.validation_fraction=0.2 for dataset=text), or lower model.context.",
        )


def repetition(look: Look) -> Iterator[Advice]:
    """Is there enough to learn from?"""
    e, tokens = look.exposure, len(look.prepared.train)
    if e.epochs is None:
        yield Advice(
            False,
            f"How often each token is seen depends on the budget: {e.epoch_steps:,} steps see each once. "
            "train.py says at its start how many steps it expects.",
        )
    elif e.epochs < 1:
        yield Advice(
            False,
            f"The training sees {percent(e.epochs, 0)} of the text, which is fine; all of it is steps={e.epoch_steps}.",
        )
    elif e.epochs > WORN_OUT:
        yield Advice(
            True,
            f"Each token is seen {e.epochs:,.0f} times. Beyond about {WORN_OUT} times a text teaches next to nothing, "
            f"and is learned by heart: take steps={e.epoch_steps * WORN_OUT} (seen {WORN_OUT} times) or fewer "
            "and a small eval_every (the best checkpoint is kept), or more text.",
        )
    if look.parameters > tokens and (e.epochs is None or e.epochs > FRESH):
        yield Advice(
            True,
            f"The model has {look.parameters:,} parameters for {tokens:,} tokens of text, so it can learn the text by "
            "heart: take a smaller model.n_layer or model.d_model, fewer steps, model.dropout=0.1, or more text.",
        )


def vocabulary(look: Look) -> Iterator[Advice]:
    """Does the text fill the vocabulary?"""
    size, seldom = look.prepared.tokenizer.vocab_size, look.use.fewer_than(SELDOM)
    if size <= SMALL_VOCABULARY or seldom <= size / 2:
        return
    if look.prepared.tokenizer.name == "char":
        yield Advice(
            True,
            f"{seldom:,} of the {size:,} characters of the vocabulary stand fewer than {SELDOM} times in the training "
            "text, and the model learns next to nothing of them: tokenizer=bpe makes them of parts "
            "that it sees more often.",
        )
    elif look.prepared.tokenizer.name == "named":
        yield Advice(
            True,
            f"{seldom:,} of the {size:,} tokens occur fewer than {SELDOM} times in the training text, "
            f"{len(look.use.unseen):,} of them never, so the vocabulary is too large for it: tokenizer=bpe "
            "learns a small one from your text.",
        )
    elif suggested_size(look) <= size / 2:
        yield Advice(
            True,
            f"{seldom:,} of the {size:,} tokens occur fewer than {SELDOM} times in the training text, "
            f"{len(look.use.unseen):,} of them never, so the vocabulary is too large for it: take more text, or "
            f"tokenizer.vocab_size={suggested_size(look)}.",
        )


def suggested_size(look: Look) -> int:
    """A vocabulary that the text fills: as many tokens as occur often enough, down to a power of two."""
    often = look.prepared.tokenizer.vocab_size - look.use.fewer_than(SELDOM)
    return max(SMALL_VOCABULARY, 1 << often.bit_length() - 1)


def duplicates(look: Look) -> Iterator[Advice]:
    """Does validation judge by what was learned?"""
    if look.overlap is None or look.validation is None or not look.validation.text_bytes:
        return
    share = max(look.overlap.line_bytes, look.overlap.document_bytes) / look.validation.text_bytes
    if share > SHARED:
        yield Advice(
            True,
            f"{percent(share)} of the validation text also stands in the training text, so its loss flatters the "
            "model: remove the duplicates from the text, or hold out another part. Short documents, "
            "such as names, do repeat.",
        )


def strangers(look: Look) -> Iterator[Advice]:
    """Are there characters that training never shows?"""
    missing = unseen(look.train.counts, look.validation.counts) if look.validation else []
    if missing and look.validation:
        many = int(look.validation.counts[missing].sum())
        few = " ".join(visible(chr(code)) for code in missing[:5])
        yield Advice(
            False,
            f"{number(len(missing), 'character')} of validation, {many:,} in all, never stand in training ({few}): the "
            "model cannot know them. If they are many, hold out another part, by dataset.holdout or "
            "dataset.validation_path.",
        )


def long_line(look: Look) -> Iterator[Advice]:
    """Would tools choke?"""
    split, seen = max(look.splits.items(), key=lambda item: item[1].longest_line)
    if seen.longest_line > HUGE_LINE:
        yield Advice(
            False,
            f"The longest line ({split}) has {seen.longest_line:,} characters. Training takes it; editors, grep and "
            "diff may not. If line ends were lost, restore them.",
        )


def lines(look: Look) -> Iterator[Advice]:
    """Is each line a text of its own, and how does it end?"""
    seen = look.train
    feeds = int(seen.counts[ord("\n")])
    if seen.lengths.count == 1 and feeds >= MANY_LINES and seen.longest_line <= SHORT_LINE:
        yield Advice(
            False,
            f"All {feeds:,} lines are short. If each is a text of its own, as in a list of names, say so with "
            "'dataset.separator=\\n' (dataset=text).",
        )
    if feeds and feeds == seen.crlf:
        yield Advice(
            False,
            "All lines end in \\r\\n, and the model will write that too; dataset.newline=lf (dataset=text) makes it "
            "\\n.",
        )


def troubles(look: Look) -> Iterator[Advice]:
    """Was the text read, converted or joined wrongly?"""
    for trouble in look.troubles:
        what = trouble.kind.what
        yield Advice(True, f"{what[0].upper()}{what[1:]}, {trouble.count:,} in all: {trouble.kind.remedy}.")


def percent(share: float, digits: int = 1) -> str:
    """A share for people.

    >>> percent(0.0345), percent(0.5, 0)
    ('3.5 %', '50 %')
    """
    return f"{100 * share:.{digits}f} %"


def number(count: int, thing: str) -> str:
    """A count with its noun.

    >>> number(1, "window"), number(2000, "window")
    ('1 window', '2,000 windows')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


RULES: tuple[Callable[[Look], Iterator[Advice]], ...] = (
    troubles,
    duplicates,
    validation,
    repetition,
    vocabulary,
    strangers,
    lines,
    long_line,
)
"""In the order in which they are told: first what is wrong with the text itself."""
