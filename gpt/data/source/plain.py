"""Plain text files as documents, exactly as they are written, in memory that does not grow with them.

A file is read in blocks of bytes, which an incremental decoder turns into chunks of text. Nothing is changed but what
the settings ask for, and a leading byte order mark, which tells how the file is encoded and is no part of its text.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from encodings.aliases import aliases
from pathlib import Path
from typing import Literal

from gpt.config import UserError, nearest
from gpt.data.dataset import Document
from gpt.data.source.diagnosis import HEAD, MARKS, TELLING, advice, refuse_wide, wide_encoding
from gpt.data.source.rows import Errors
from gpt.data.source.streams import grouped, separated

Newline = Literal["keep", "lf"]
"""What becomes of line ends: they stay as they are, or each CRLF and each lone CR becomes a LF."""

BLOCK = 1 << 16
"""Bytes read at once."""

UNFIT = {"utf-7", "unicode-escape", "raw-unicode-escape", "punycode", "idna"}
"""Codecs that no file of text is written in; some can give half of a surrogate pair, which is no character."""


@dataclass(frozen=True)
class PlainText:
    """How a file of plain text becomes documents."""

    encoding: str = "utf-8"
    """A name that `codec_of` takes."""
    errors: Errors = "error"
    """What becomes of bytes that are no text in that encoding."""
    newline: Newline = "keep"
    """What becomes of line ends."""
    separator: str | None = None
    """What stands between documents, once line ends are dealt with, and belongs to none; None: a file is a document."""

    def documents(self, path: Path) -> Iterator[Document]:
        """The documents of a file, unzipped where its name ends in .gz; one without text is none.

        Raises:
            UserError: while reading, for a file that cannot be read, is damaged, or holds bytes that are no text.
        """
        chunks = with_newlines(self.decoded(path), self.newline)
        return grouped(chunks if self.separator is None else separated(chunks, self.separator))

    def decoded(self, path: Path) -> Iterator[str]:
        """The text of a file as it is, a block at a time."""
        codec = codec_of(self.encoding)
        decoder = codecs.getincrementaldecoder(codec)("strict" if self.errors == "error" else "replace")
        head, end = b"", 0
        try:
            for block in blocks(path, BLOCK):
                first = end == 0
                head, end = head or block[:HEAD], end + len(block)
                if first and self.errors == "error" and len(head) >= TELLING:
                    refuse_wide(head, codec, path)
                yield decoder.decode(block.removeprefix(MARKS.get(codec, b"")) if first else block)
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            # The error tells of the bytes that were left over from earlier blocks, and of the last block behind them.
            offset = end - len(error.object) + error.start
            wrong = error.object[error.start : error.end].hex(" ")
            raise UserError(
                f"{path}: no {codec} text at byte {offset} ({wrong}: {error.reason}); {advice(head, codec)}"
            ) from None
        except UnicodeError as error:  # no byte order mark, which utf-16 and utf-32 without -le or -be must have
            way_out = wide_encoding(head) or f"{codec}-le or {codec}-be"
            raise UserError(f"{path}: {error}; set dataset.encoding={way_out}") from None


def codec_of(encoding: str) -> str:
    """The standard name of an encoding of text files.

    Raises:
        ValueError: there is none of this name; the message says what to take.
    """
    if codec := _codec_or_none(encoding):
        return codec
    names = [name.replace("_", "-") for name in sorted(set(aliases.values())) if _codec_or_none(name)]
    close = nearest(encoding, names)
    raise ValueError(f"{encoding!r:.40} is no encoding of text; {close}take utf-8, utf-16, latin-1 or another")


def _codec_or_none(encoding: str) -> str | None:
    try:
        "a".encode(encoding)  # refuses a codec that makes no bytes of text, such as zlib
        codec = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        return None
    return None if codec in UNFIT else codec.removesuffix("-sig")  # its mark is dropped anyway


def begins_with_mark(path: Path, encoding: str) -> bool:
    """Whether a byte order mark is left out of the file's text.

    Raises:
        UserError: the file cannot be read.
    """
    mark = MARKS.get(codec_of(encoding))
    return mark is not None and next(blocks(path, len(mark)), None) == mark


def blocks(path: Path, size: int) -> Iterator[bytes]:
    """The bytes of a file, unzipped where its name ends in .gz, so many at once.

    Raises:
        UserError: while reading, for a file that cannot be read or whose compression is damaged.
    """
    with readable(path), gzip.open(path) if is_gzip(path) else path.open("rb") as file:
        while block := file.read(size):
            yield block


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What goes wrong inside is told as the user's mistake, a `UserError`."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: damaged, or not compressed by gzip ({error}); compress it anew") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; mend that, or leave it out") from None


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.name.lower().endswith(".gz")


def with_newlines(chunks: Iterable[str], newline: Newline) -> Iterator[str]:
    r"""The text with its line ends as told.

    >>> list(with_newlines(["a\r", "\nb\rc\r"], "lf"))
    ['a', '\nb\nc', '\n']
    """
    if newline == "keep":
        yield from chunks
        return
    decoder = io.IncrementalNewlineDecoder(None, translate=True)  # without a decoder it takes text
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode("", final=True)
