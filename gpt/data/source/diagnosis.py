"""What a file that is no text, or not in the encoding that was said, seems to be, and what to do about it."""

import codecs
from pathlib import Path

from gpt.config import UserError

HEAD = 1 << 12
"""Bytes at the beginning of a file that tell what it is."""

MARKS = {
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-8": codecs.BOM_UTF8,
}
"""The byte order mark of each encoding whose codec takes it for text; the longer ones begin with the shorter."""

TELLING = 64
"""Bytes, fewer of which may have zeros by chance."""

MAGIC = {
    b"\x1f\x8b": "compressed by gzip: its name must end in .gz",
    b"PAR1": "a parquet table: its name must end in .parquet",
    b"PK\x03\x04": "a zip archive or an office document; leave it out, or turn it into text",
    b"%PDF": "a PDF document; leave it out, or turn it into text",
    b"\x89PNG": "a picture; leave it out",
}
"""How files begin that are taken for text by mistake, and what to say of them."""

ZEROS = {"x000": "utf-32-le", "000x": "utf-32-be", "x0x0": "utf-16-le", "0x0x": "utf-16-be"}
"""Which of four bytes are mostly zero in western text."""

CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\f\r\x1b"))
"""Bytes that text hardly has, in any encoding that keeps those of ASCII."""


def refuse_wide(head: bytes, codec: str, path: Path) -> None:
    """Refuse text of two or four bytes a character that has no mark: read as UTF-8 it is text full of zeros.

    Raises:
        UserError: how a file begins shows that it is such.
    """
    wide = wide_encoding(head)
    if wide and codec[:6] not in ("utf-16", "utf-32"):
        raise UserError(f"{path}: many bytes are zero, so this is no {codec}; set dataset.encoding={wide}")


def advice(head: bytes, codec: str) -> str:
    """What to do about a file that is no text in `codec`, given how it begins."""
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return f"this is {kind}"
    wide = next((name for name, mark in MARKS.items() if head.startswith(mark)), None) or wide_encoding(head)
    if wide and wide[:6] != codec[:6]:
        return f"set dataset.encoding={wide}, which it looks like"
    if codec[:6] not in ("utf-16", "utf-32") and len(head) - len(head.translate(None, CONTROLS)) > len(head) / 50:
        return "this seems to be no text; leave it out"
    if codec != "utf-8" and reads_as_utf_8(head):
        return "it reads as utf-8: leave dataset.encoding out"
    return "set dataset.encoding to what it is in, cp1252 or shift_jis say; dataset.errors=replace loses such bytes"


def reads_as_utf_8(head: bytes) -> bool:
    """Whether the bytes are UTF-8 with characters beyond ASCII; the last one may be cut."""
    try:
        return not codecs.utf_8_decode(head)[0].isascii()
    except UnicodeDecodeError:
        return False


def wide_encoding(head: bytes) -> str | None:
    """The encoding of two or four bytes a character that would explain where the zero bytes are, if there is one."""
    return ZEROS.get("".join("0" if head[i::4].count(0) > len(head) / 8 else "x" for i in range(4)))
