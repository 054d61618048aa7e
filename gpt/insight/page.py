"""One HTML file that holds all it needs, to be opened by hand: no network, no other file, light and dark.

A page is a jinja2 template that extends `frame.html`; beside it may stand a style and a script, which it includes. What
the script draws is handed over as JSON.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gpt.files import write_whole

FRAME = Path(__file__).parent / "template"
"""The folder of the frame and of the style that all pages share."""

ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}
"""In JSON these stand in strings alone, where they mean the same so; no tag and no comment can begin."""


def build(template: Path, data: Mapping[str, Any], **values: Any) -> str:
    """The page, as text.

    Args:
        template: of the body; it extends "frame.html", and includes files that stand beside it by their names.
        data: what the page's script reads, by `JSON.parse(document.getElementById("data").textContent)`.
        values: what the template names; in HTML their texts are escaped.

    Raises:
        ValueError: a number in `data` that JSON does not have: infinite, or none.
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, FRAME]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(**values, data=as_json(data))


def as_json(data: Mapping[str, Any]) -> Markup:
    r"""`data` as it may stand in a script element, whatever texts are in it.

    >>> print(as_json({"prompt": "</script>"}))
    {"prompt":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(ESCAPES))


def write(path: Path, html: str) -> Path:
    """Write a page, and make its folder; the file is the old or the new one at any moment.

    Half of a surrogate pair, as it comes from a file name that is no UTF-8, becomes a question mark.

    Raises:
        OSError: it cannot be written there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, html.encode(errors="replace").decode())
    return path
