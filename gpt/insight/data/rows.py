"""What was seen of a text, as rows: what is told, by its name."""

from collections.abc import Iterator

from gpt.data.dataset import Split
from gpt.files import nearby
from gpt.insight.data.advice import number, percent
from gpt.insight.data.characters import name, rarest, unseen, visible
from gpt.insight.data.excerpt import shown
from gpt.insight.data.look import Look
from gpt.insight.data.overlap import SHOWN, WORTH
from gpt.insight.data.survey import SplitSurvey

Row = tuple[str, str]

FEW = 6
"""Examples of a kind."""

LONG = 20
"""Characters that are shown of a token in a list."""

MANY = 24
"""Characters on a line."""


def text(look: Look) -> Iterator[Row]:
    """What it is."""
    tokenizer = look.prepared.tokenizer
    yield "text", look.prepared.description
    yield "tokenizer", f"{tokenizer.name}, {number(tokenizer.vocab_size, 'token')} in the vocabulary"
    yield "prepared in", nearby(look.prepared.train.path.parent)


def split(seen: SplitSurvey, tokens: int, total: int) -> Iterator[Row]:
    """How much of the text it is; `total`: bytes of all of it."""
    yield "documents", f"{seen.lengths.count:,}"
    yield "bytes", f"{seen.text_bytes:,}"
    yield "share of the bytes", f"{percent(ratio(seen.text_bytes, total))}"
    yield "characters", f"{seen.characters:,}"
    yield "tokens", f"{tokens:,}"
    yield "characters a token", f"{ratio(seen.characters, tokens):.2f}"
    yield "bytes a token", f"{ratio(seen.text_bytes, tokens):.2f}"


def training(look: Look) -> Iterator[Row]:
    """How the text is shown."""
    e = look.exposure
    yield "model", f"{look.parameters:,} parameters, context {e.context}"
    yield (
        "an epoch",
        f"{number(e.sequences, 'sequence')} of {e.context} tokens, {number(e.epoch_steps, 'step')} of {e.batch_size}; "
        f"it leaves out {number(e.left_out, 'token')}",
    )
    if e.epochs is not None:
        times = f"{e.epochs:,.1f}" if e.epochs >= 0.95 else f"{e.epochs:.2g}"
        yield "each token", f"is seen {times} times in {number(e.steps or 0, 'step')}"
    if e.validation_windows:
        steps = number(max(1, round(e.evaluation_steps)), "step")
        yield (
            "an evaluation",
            f"reads {number(e.validation_windows, 'window')} and takes about as long as {steps}"
            + (f"; there are {number(e.evaluations, 'evaluation')}" if e.evaluations else ""),
        )


def documents(look: Look) -> Iterator[Row]:
    """How long they are, and their lines."""
    lengths, context = look.train.lengths, look.exposure.context
    if lengths.count > 1:
        ends = f"shortest {lengths.shortest:,} characters, median {lengths.median:,}, longest {lengths.longest:,}"
        yield "in training", ends
        yield "", f"{look.use.shorter:,} have fewer tokens than the context, {context}; {look.use.longer:,} have more"
    if lengths.empty:
        yield "empty", f"{lengths.empty:,}"
    where, seen = max(look.splits.items(), key=lambda item: item[1].longest_line)
    place = standing(where, seen.longest_line_document, seen)
    yield "longest line", f"{number(seen.longest_line, 'character')}, in {place}"


def standing(where: Split, document: int, seen: SplitSurvey) -> str:
    """Where something stands; no document is named where there is only one."""
    return f"{where}, document {document:,}" if seen.lengths.count > 1 else where


def characters(look: Look) -> Iterator[Row]:
    """Which there are, and which are rare."""
    yield "different", f"{int((look.counts > 0).sum()):,}"
    for i, (code, many) in enumerate(rarest(look.counts, FEW)):
        yield "" if i else "rarest", f"{many:,}  {visible(chr(code))}  {name(code)}"
    if look.validation and (missing := unseen(look.train.counts, look.validation.counts)):
        listed = " ".join(visible(chr(code)) for code in missing[:MANY])
        yield "only in validation", f"{len(missing):,}: {listed}{' …' * (len(missing) > MANY)}"


def vocabulary(look: Look) -> Iterator[Row]:
    """Which tokens there are most often, and which training never shows."""
    tokenizer, use = look.prepared.tokenizer, look.use
    yield "most frequent", "   ".join(f"{shown(tokenizer, i)} {percent(share)}" for i, share in use.commonest(FEW))
    if len(use.unseen):
        learned = sorted(use.unseen.tolist(), key=lambda i: -len(tokenizer.tokens[i]))  # bytes say little
        listed = "   ".join(clipped(shown(tokenizer, i)) for i in learned[:FEW])
        share = len(use.unseen) / tokenizer.vocab_size
        yield "never in training", f"{len(use.unseen):,} ({percent(share)}): {listed}{' …' * (len(learned) > FEW)}"


def clipped(label: str) -> str:
    """The beginning of a token that is long."""
    return label if len(label) <= LONG else f"{label[: LONG - 1]}…"


def overlap(look: Look) -> Iterator[Row]:
    """What stands in both splits."""
    if look.overlap is None or look.validation is None:
        return
    found, size = look.overlap, look.validation.text_bytes
    for key, many, shared in (
        ("whole documents", found.documents, found.document_bytes),
        (f"lines of {WORTH}+", found.lines, found.line_bytes),
    ):
        about = "about " if found.one_in > 1 else ""
        told = f"{about}{many:,} different, {percent(ratio(shared, size))} of the validation text"
        yield key, told if many else "none"
    if found.example:
        yield "for example", found.example + "…" * (len(found.example) == SHOWN)
    if found.one_in > 1:
        yield "estimated from", f"one line or document in {found.one_in}"


def troubles(look: Look) -> Iterator[Row]:
    """Signs that the text was read or converted wrongly, and where they stand first."""
    for trouble in look.troubles:
        place, many = trouble.place, f"{trouble.count:,}"
        if place is None:
            yield many, trouble.kind.what
        else:
            seen = look.splits[trouble.split]
            yield many, f"{trouble.kind.what}, first in {standing(trouble.split, place.document, seen)}:"
            yield "", visible(place.text)


def ratio(part: float, whole: float) -> float:
    """Their quotient, 0 where there is nothing."""
    return part / whole if whole else 0.0
