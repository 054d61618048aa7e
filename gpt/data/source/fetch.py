"""Files behind URLs, fetched once."""

import hashlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from gpt.config import UserError
from gpt.data.progress import bar
from gpt.data.source.library import UNREACHABLE, told
from gpt.data.source.wording import causes, kinds_of
from gpt.files import sync, workshop

T = TypeVar("T")

BLOCK = 1 << 20
"""Bytes read at a time."""

TIMEOUT = (10.0, 30.0)
"""Seconds without a connection, and without an answer, after which a server is given up."""

WAITS = (1.0, 3.0)
"""Seconds before each further try of a fetch that broke off."""

BUSY = (429, 500, 502, 503, 504)
"""HTTP's codes of what a later try may cure."""


def fetch(url: str, folder: Path) -> Path:
    """The file behind a URL, fetched once: a later call finds it and needs no network.

    Args:
        url: of http, https or hf.
        folder: where fetched files live; made where it is not there.

    Raises:
        UserError: it cannot be fetched or kept; nothing is left behind then.
    """
    whole = folder / local_name(url)
    if whole.exists():
        return whole
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with workshop(folder.parent, ".fetching-") as aside:  # beside it: where nothing comes, it is not made
            part = aside / whole.name
            with told(url):
                _save(url, part)
            sync(part)
            folder.mkdir(exist_ok=True)
            part.replace(whole)
    except OSError as error:
        raise UserError(f"{folder}: what is fetched cannot be kept there: {error.strerror}; have it writable") from None
    return whole


def noting(source: Iterable[T], url: str, path: Path) -> Iterator[T]:
    """What `source` gives, which it reads from a fetched file; an error says where that is from, and how to renew it.

    Raises:
        UserError: the source's, with that added.
    """
    try:
        yield from source
    except UserError as error:
        raise UserError(f"{error} ({path} was fetched from {url}; delete it to have it fetched again)") from None


def local_name(url: str) -> str:
    """The name of a fetched file: that of the URL, told apart by a hash from others that end alike.

    >>> local_name("https://host/some/input.txt.gz?download=true")
    'input-4182514d.txt.gz'
    """
    stem, dot, endings = Path(urlsplit(url).path).name.partition(".")
    return f"{stem}-{hashlib.sha256(url.encode()).hexdigest()[:8]}{dot}{endings}"


def _save(url: str, path: Path) -> None:
    """Fetch into a file, again from the start where the connection is lost."""
    for wait in (*WAITS, None):
        try:
            with _answer(url) as (size, blocks), path.open("wb") as file, bar(f"fetch {path.name}", size) as advance:
                for block in blocks:
                    file.write(block)
                    advance(len(block))
            break
        except Exception as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            silent = any({"Timeout", "TimeoutError"} & kinds_of(cause) for cause in causes(error))
            if wait is None or silent or not (status in BUSY or UNREACHABLE & kinds_of(error)):
                raise
            time.sleep(wait)
    if not path.stat().st_size:
        raise UserError(f"{url}: the answer is empty; check dataset.path")


@contextmanager
def _answer(url: str) -> Iterator[tuple[int | None, Iterator[bytes]]]:
    """The size, where it is known, and the blocks of what is behind a URL."""
    if url.startswith("hf://"):
        import fsspec

        with fsspec.open(url, "rb") as file:
            yield file.size, iter(lambda: file.read(BLOCK), b"")
    else:
        import requests

        headers = {"Accept-Encoding": "identity"}  # so that the size told is that of what comes
        with requests.get(url, stream=True, timeout=TIMEOUT, headers=headers) as answer:
            answer.raise_for_status()
            size = answer.headers.get("Content-Length", "")
            yield int(size) if size.isdecimal() else None, answer.iter_content(BLOCK)
