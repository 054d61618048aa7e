"""Prompts -> texts, piece by piece: tokenizer, generation and the stream of whole characters put together."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from gpt.config import UserError
from gpt.data.tokenizer import Tokenizer, Unknown
from gpt.generation.decoder import Decoder
from gpt.generation.decoder.choice import Decoding
from gpt.generation.generate import NOTHING, crop, generate, prompt_limit
from gpt.generation.settings import GenerationSettings
from gpt.generation.stream import TextStream
from gpt.model.gpt import GPT

Ending = Literal["length", "context", "stop", "end-of-text"]


@dataclass
class Sample:
    """One text that continues a prompt."""

    prompt: str
    """What the text continues."""
    text: str = ""
    """What was written so far, without the prompt."""
    tokens: int = 0
    """How many tokens the text took; an end-of-text token is not counted, those of a stop string are."""
    ending: Ending | None = None
    """Why it ended: `max_new_tokens` written, context full (overflow=stop), stop string, end of text."""


class TextGeneration:
    """Texts being written side by side: iterate over the pieces, then read `samples`.

        texts = TextGeneration(model, tokenizer, ["The people"], GenerationSettings(num_samples=3))
        for pieces in texts:
            print(pieces[0], end="", flush=True)
        print(texts.samples[1].text)

    Args:
        model: continues the prompts.
        tokenizer: the one that the model was trained with.
        prompts: texts; an empty one starts from the tokenizer's end-of-text, that is, begins a document.
        settings: how.
        decoding: the decoders that there are of the model; None: the model as it is.

    Raises:
        UserError: a prompt with a character that the tokenizer does not know, an empty one and no end-of-text, or
            with overflow=error one that does not fit.
    """

    def __init__(
        self,
        model: GPT,
        tokenizer: Tokenizer,
        prompts: Sequence[str],
        settings: GenerationSettings,
        decoding: Decoding | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.settings = settings
        self.samples = [Sample(prompt) for prompt in prompts for _ in range(settings.num_samples)]
        """All texts, those of a prompt side by side, in the order of the prompts."""
        self.notices: list[str] = []
        """Sentences to show the user: prompts that had to be cropped."""
        ids = [encode_prompt(tokenizer, prompt, settings.unknown) for prompt in prompts]
        if settings.overflow != "error":
            ids, self.notices = crop(ids, prompt_limit(model, settings.overflow), settings.overflow)
        padded = len({len(prompt) for prompt in ids}) > 1
        make = decoding.decoder if decoding else lambda *_: Decoder(model)
        self.decoder = make(len(self.samples), padded, settings.max_new_tokens)
        self._steps = generate(model, ids, settings, tokenizer.vocab_size, self.decoder)

    def __iter__(self) -> Iterator[list[str]]:
        """Yield after each token the new text of every sample, whole characters only, often ""."""
        streams = [TextStream(self.settings.stop) for _ in self.samples]
        with closing(self._steps) as steps:
            for tokens in steps:
                rows = zip(self.samples, streams, tokens.tolist(), strict=True)
                yield [self._take(sample, stream, token) for sample, stream, token in rows]
                if all(sample.ending for sample in self.samples):
                    return
        yield [self._end(sample, stream) for sample, stream in zip(self.samples, streams, strict=True)]

    def run(self) -> list[Sample]:
        """Write all texts to their ends."""
        for _ in self:
            pass
        return self.samples

    def _take(self, sample: Sample, stream: TextStream, token: int) -> str:
        """What one more token adds to the text of a sample, which it may end."""
        if sample.ending or token == NOTHING:
            return self._end(sample, stream)
        if token == self.tokenizer.end_of_text:
            return self._end(sample, stream, "end-of-text")
        sample.tokens += 1
        text = stream.feed(self.tokenizer.decode_bytes([token]))
        sample.text += text
        if stream.stopped:
            sample.ending = "stop"
        return text

    def _end(self, sample: Sample, stream: TextStream, ending: Ending | None = None) -> str:
        """The text that was held back, where the sample has not ended before."""
        if sample.ending:
            return ""
        full: Ending = "length" if sample.tokens == self.settings.max_new_tokens else "context"
        text = stream.finish()
        sample.text += text
        sample.ending = ending or full
        return text


def encode_prompt(tokenizer: Tokenizer, prompt: str, unknown: Unknown | None = None) -> list[int]:
    """The prompt's token ids; for an empty one the end-of-text id, after which a document begins.

    Raises:
        UserError: a character that the tokenizer does not know, or nothing to start from.
    """
    try:
        ids = tokenizer.encode(prompt, unknown)
    except UserError as error:
        raise UserError(f"prompt: {str(error).removeprefix('text: ')}") from None
    if ids:
        return ids
    if tokenizer.end_of_text is None:
        empty = "nothing that the tokenizer knows is in it" if prompt else "it is empty"
        raise UserError(f"prompt: {empty}, and this tokenizer has no end-of-text to start from; give a prompt")
    return [tokenizer.end_of_text]
