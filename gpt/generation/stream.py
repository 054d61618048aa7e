"""Bytes that arrive in pieces -> text in whole characters, up to a stop string.

A token is a string of bytes that may end in the middle of a character, so what is printed token by token is
decoded incrementally: the pieces of a text, joined, are the text decoded at once, whatever the pieces are.
"""

import codecs


class TextStream:
    """Decode UTF-8 piece by piece and end the text right before `stop`; an empty `stop` never ends it.

    Text that may turn out to be the beginning of the stop string is held back until that is decided. Bytes
    that are no UTF-8 become U+FFFD, as with `errors="replace"`; nothing else is changed, line ends included.

    >>> stream = TextStream(stop="END")
    >>> stream.feed("日".encode()[:2]), stream.feed("日".encode()[2:] + b"E"), stream.feed(b"N!")
    ('', '日', 'EN!')
    >>> stream.feed(b" EN"), stream.feed(b"D more"), stream.stopped
    (' ', '', True)
    """

    def __init__(self, stop: str = "") -> None:
        self.stop = stop
        self.stopped = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        """The text that `data` completes and that surely stands before the stop string; "" once stopped."""
        return self._release(self._decoder.decode(data))

    def finish(self) -> str:
        """The rest of the text, when no more bytes come; half a character at the end becomes U+FFFD."""
        text = self._release(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return text + held

    def _release(self, text: str) -> str:
        if self.stopped:
            return ""
        text = self._held + text
        if self.stop and self.stop in text:
            self.stopped = True
            self._held = ""
            return text[: text.index(self.stop)]
        certain = len(text) - overlap(text, self.stop)
        self._held = text[certain:]
        return text[:certain]


def overlap(text: str, stop: str) -> int:
    """The length of the longest end of `text` that is a beginning of `stop`, but not all of it.

    >>> overlap("a banana", "nana!"), overlap("a banana", "xyz")
    (4, 0)
    """
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
