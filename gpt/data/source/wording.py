"""Other people's exceptions, and long lists, in the words of one line."""

import re
from collections.abc import Iterable


def kinds_of(error: BaseException) -> set[str]:
    """The names of its classes: they stand for libraries that need not be imported, or installed, to compare."""
    return {kind.__name__ for kind in type(error).__mro__}


def causes(error: BaseException) -> list[BaseException]:
    """The error, what it was raised from or in the handling of, and so on."""
    chain, cause = [error], error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return chain


def innermost(error: BaseException) -> str:
    """What went wrong at the bottom, as the system puts it where it does."""
    said = [one_line(getattr(cause, "strerror", None) or cause) for cause in causes(error)]
    text = next((text for text in reversed(said) if text), type(error).__name__)
    return re.sub(r"^\[Errno -?\d+\] ", "", text)


def one_line(message: object) -> str:
    """The first line of a message that has something on it, at most 200 characters of it."""
    text = " ".join(str(message).strip().partition("\n")[0].split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def listed(names: Iterable[object], most: int = 20) -> str:
    """Names for a message, so many at most.

    >>> listed("abcd", most=2)
    'a, b and 2 more'
    """
    texts = list(map(str, names))
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
