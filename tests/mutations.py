"""Runs that are damaged, or made to do harm: each folder is drawn from its number and a seed.

A small whole run is copied, mutated in one way or two, and mostly given checksums that are right again, so that the
deeper checks are reached. `hostile.py` opens them.
"""

import hashlib
import json
import math
import os
import pickle
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import yaml
from safetensors.torch import load_file, save_file

from gpt.checkpoint import CHECKSUMS, CONFIG, OPTIMIZER, STATE, WEIGHTS
from gpt.config import UserError, parse
from gpt.data.tokenizer import FILE as VOCABULARY
from gpt.data.tokenizer.bpe import BPEConfig
from gpt.data.tokenizer.byte import ByteConfig
from gpt.data.tokenizer.char import CharConfig
from gpt.model.config import GPTConfig
from gpt.model.gpt import GPT
from gpt.run_folder import RunFolder
from gpt.runs import CONFIG as CONFIG_YAML
from gpt.training.optimizer import optimizer_state
from gpt.training.settings import TrainSettings

SEED = 2026
POINT = "checkpoints/step_00000002"

Rng = random.Random
Change = Callable[[Rng, Path], None]

CHOICES = {
    "dataset": {"name": "builtin"},
    "tokenizer": {"name": "byte"},
    "optimizer": {"name": "adamw"},
    "schedule": {"name": "linear"},
}
SMALL = {"context": 16, "n_layer": 2, "n_head": 2, "d_model": 8}
LETTERS = "\n abcdefghijklmnopqrstuvwxyz私"
BASES: dict[str, dict[str, Any]] = {
    "byte, sdpa, rope": {"model": SMALL},
    "char, reference, learned": {
        "model": {
            **SMALL, "norm": "layernorm", "bias": True, "tied": False, "qk_norm": False,
            "attention": {"name": "reference"}, "position": {"name": "learned"}, "feedforward": {"name": "gelu"},
        },
        "tokenizer": {"name": "char"},
    },
    "bpe, sliding_window, alibi": {
        "model": {
            **SMALL, "n_kv_head": 1, "position": {"name": "alibi"},
            "attention": {"name": "sliding_window", "window": 4, "layers": "SL"},
        },
        "tokenizer": {"name": "bpe", "vocab_size": 300},
        "schedule": {"name": "wsd"},
    },
    "byte, linear, sinusoidal": {
        "model": {
            **SMALL, "attention": {"name": "linear"}, "position": {"name": "sinusoidal"},
            "feedforward": {"name": "relu2"},
        },
        "optimizer": {"name": "muon"},
        "logger": {"console": {"name": "console"}},
    },
    "char, sparse, none": {
        "model": {**SMALL, "attention": {"name": "sparse", "stride": 4}, "position": {"name": "none"}},
        "tokenizer": {"name": "char"},
        "dataset": {"name": "text", "path": "/nowhere/text.txt"},
    },
}  # fmt: skip


def tokenizer_of(name: str) -> Any:
    """A small one that needs no text to learn from."""
    if name == "byte":
        return ByteConfig().build(lambda split: iter(()))
    if name == "char":
        return CharConfig().build(lambda split: iter([[LETTERS], [LETTERS]]))
    text = "the people of the army and the navy "
    return BPEConfig(vocab_size=300).build(lambda split: iter([[text * 9]]))


def build_base(name: str, folder: Path) -> None:
    """A whole run: its configuration, metrics, and one checkpoint."""
    settings = parse(TrainSettings, {**CHOICES, "device": "cpu", **BASES[name]})
    tokenizer = tokenizer_of(settings.tokenizer.name)
    torch.manual_seed(0)
    model = GPT(settings.model.for_vocabulary(tokenizer.vocab_size))
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    run.start(settings.for_model(model.config), SimpleNamespace(tokenizer=tokenizer, fingerprint="f00d"), keep=1)
    for step in (1, 2):
        run.log({"step": step, "loss": 3.0, "tokens": 256 * step})
    state = {"step": 2, "tokens": 512, "elapsed": 0.5, "validation_loss": 3.0, "skipped": 0, "skipped_in_a_row": 0}
    state |= {"spikes": 0, "losses": [3.0], "accumulate": 1, "scaler": {}, "device": "cpu", "precision": "fp32"}
    state |= {"compiled": False}
    run.save(model.state_dict(), optimizer_state(model, settings.optimizer.build(model)), state)


# --- What is put into them -------------------------------------------------------------------------------------------

HUGE, DEEP, NESTED = "<huge>", "<deep>", "<nested>"
RAW = {HUGE: "9" * 5000, DEEP: "[" * 20_000 + "]" * 20_000, NESTED: "[" * 400 + "]" * 400}
"""What no library would write, by the text that stands for it until it is written."""

NAMES = [
    "os", "../os", "os.system", "harm", "harm.deeper", "../../../outside/harm", "__init__", "_softmax", "this",
    "gpt.model.attention.sdpa", "sdpa/../linear", "/etc/passwd", "..", ".", "", "sdpa\n", "sdpa ", "SDPA", "a\x00b",
    "\x1b[31mred\x1b[0m", "two\nlines\r\n", "\u2028", "\u202eelpoep", "\ud800", "私", "x" * 20_000, "%s%n%d",
    "${oc.env:HOME}", "{0.__class__}", "!!python/name:os.system", "<<", "*a", "&a", "=",
]  # fmt: skip
NUMBERS = [
    0, -1, 1, 3, 16, 257, 65_537, 1 << 20, 1 << 24, (1 << 24) + 1, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 63, 1 << 64,
    -(1 << 63), 10**30, 10**400, HUGE, 0.5, 1.5, -0.0, 1e-320, 1e-30, 1e30, 1e308, math.nan, math.inf, -math.inf,
]  # fmt: skip
OTHERS = [None, True, False, [], {}, [[]], [1, 2], ["a"], {"name": "os"}, {"name": "sdpa"}, {"": 0}, NESTED, DEEP]
PATHS = [
    "../../../outside/secret", "../outside/secret", "/etc/passwd", "/dev/zero", "../state.json", f"{WEIGHTS}/..",
    "a/../../b", "~", "~root", "\\\\host\\share", f"./{WEIGHTS}", f"sub/{WEIGHTS}", "x" * 300,
]  # fmt: skip
KEYS = ["_target_", "__class__", "__reduce__", "name", "_partial_", "defaults", "hydra", "model", *NAMES]
DTYPES = [
    "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "F6_E3M2", "C64", "I64", "I32",
    "I8", "U8", "U64", "BOOL", "f32", "", "Q4", None, 7,
]  # fmt: skip


class Harm:
    """Makes a file where it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("harm"),)


def any_value(rng: Rng) -> Any:
    return rng.choice(rng.choice([NAMES, NUMBERS, OTHERS, PATHS]))


def raw(text: str) -> str:
    for name, content in RAW.items():
        text = text.replace(f'"{name}"', content).replace(f"'{name}'", content).replace(name, content)
    return text


def as_json(content: Any) -> bytes:
    return raw(json.dumps(content)).encode()


def as_yaml(content: Any) -> bytes:
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1 << 30)
    return raw(text).encode(errors="surrogatepass")


# --- Mutations: of bytes ---------------------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    """The regular files of a run."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def any_file(rng: Rng, folder: Path) -> Path:
    return rng.choice(files(folder) or [folder / POINT / STATE])


def flip_bits(rng: Rng, folder: Path) -> None:
    path = any_file(rng, folder)
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 8])):
        # The first bytes are a header's, and as many are tried as of all the others.
        index = rng.randrange(min(len(content), rng.choice([16, 1 << 30])) or 1)
        if content:
            content[index] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncate(rng: Rng, folder: Path) -> None:
    path = any_file(rng, folder)
    os.truncate(path, rng.choice([0, 1, 7, 8, rng.randrange(path.stat().st_size + 1), max(0, path.stat().st_size - 1)]))


def splice(rng: Rng, folder: Path) -> None:
    """Bytes are repeated, left out, exchanged or added."""
    path = any_file(rng, folder)
    content = path.read_bytes()
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    path.write_bytes(
        rng.choice(
            [
                content[:b] + content[a:],
                content[:a] + content[b:],
                content[:a] + rng.randbytes(b - a) + content[b:],
                content + rng.choice([b"\0", b" ", b"{}", b"\n", rng.randbytes(9)]),
                rng.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b" "]) + content,
            ]
        )
    )


def replace_file(rng: Rng, folder: Path) -> None:
    path = any_file(rng, folder)
    path.write_bytes(
        rng.choice([
            b"", b"{}", b"[]", b"null", b"{", b"\0" * 64, rng.randbytes(512), pickle.dumps(Harm()),
            b"PK\3\4" + rng.randbytes(64), any_file(rng, folder).read_bytes(), raw(DEEP).encode(), raw(HUGE).encode(),
            ('{"a":' * 2000).encode(), json.dumps({"a": 1}).encode("utf-16"),
        ])
    )  # fmt: skip


def grow(rng: Rng, folder: Path) -> None:
    """A file of a size that it never has; most of it is a hole."""
    path = any_file(rng, folder)
    os.truncate(path, rng.choice([1 << 17, 1 << 21, 1 << 26, 1 << 28]))


def remove(rng: Rng, folder: Path) -> None:
    path = any_file(rng, folder)
    if rng.random() < 0.2:
        shutil.rmtree(path.parent)
    else:
        path.unlink()


# --- Mutations: of tensors -------------------------------------------------------------------------------------------


def tensor_file(rng: Rng, folder: Path) -> Path:
    return folder / POINT / rng.choice([WEIGHTS, WEIGHTS, WEIGHTS, OPTIMIZER])


def edit_header(rng: Rng, folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """A safetensors file with another header before the same data."""
    path = tensor_file(rng, folder)
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    text = as_json(change(header) or header)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def any_tensor(rng: Rng, header: dict[str, Any]) -> dict[str, Any]:
    return header[rng.choice([name for name in header if name != "__metadata__"])]


def header_lengths(rng: Rng, folder: Path) -> None:
    path = tensor_file(rng, folder)
    content, size = path.read_bytes(), path.stat().st_size
    length = rng.choice([0, 1, 2, 7, size, size - 8, size + 1, 100_000_000, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63,
                         (1 << 64) - 1, rng.randrange(size)])  # fmt: skip
    path.write_bytes(struct.pack("<Q", length) + content[8:])


def header_shapes(rng: Rng, folder: Path) -> None:
    def change(header: dict[str, Any]) -> None:
        names = [name for name in header if name != "__metadata__"]
        for name in rng.sample(names, min(len(names), rng.choice([1, 1, 3]))):
            tensor = header[name]
            shape = list(tensor["shape"])
            sizes = [0, 1, -1, 2, 1 << 24, 1 << 31, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1, 1 << 64, 1.5, None, "8"]
            match rng.randrange(6):
                case 0:
                    tensor["shape"] = shape[::-1]
                case 1:
                    tensor["shape"] = [rng.choice(sizes) for _ in shape]
                case 2:
                    tensor["shape"] = [rng.choice(sizes)] * rng.choice([0, 1, 3, 65, 3000])
                case 3:
                    tensor["shape"] = rng.choice([[], None, {}, "8", DEEP, HUGE, [math.prod(shape)], [1, *shape]])
                case 4:  # the whole of it is declared larger, and where it ends too
                    factor = rng.choice([2, 1 << 20, 1 << 40])
                    tensor["shape"] = [math.prod(shape[:1]) * factor, *shape[1:]]
                    begin, end = tensor["data_offsets"]
                    tensor["data_offsets"] = [begin, begin + (end - begin) * factor]
                case 5:
                    tensor["shape"] = any_tensor(rng, header)["shape"]

    edit_header(rng, folder, change)


def header_dtypes(rng: Rng, folder: Path) -> None:
    def change(header: dict[str, Any]) -> None:
        tensors, dtype = [tensor for name, tensor in header.items() if name != "__metadata__"], rng.choice(DTYPES)
        for tensor in tensors if rng.random() < 0.3 else [rng.choice(tensors)]:
            tensor["dtype"] = dtype

    edit_header(rng, folder, change)


def header_offsets(rng: Rng, folder: Path) -> None:
    def change(header: dict[str, Any]) -> None:
        tensor, other = any_tensor(rng, header), any_tensor(rng, header)
        begin, end = tensor["data_offsets"]
        tensor["data_offsets"] = rng.choice([
            [end, begin], [begin, begin], [0, end], [begin + 4, end + 4], [begin, 1 << 62], [-4, end],
            [1 << 63, 1 << 63], other["data_offsets"], [begin], [], None, [begin, end, end],
            [str(begin), str(end)], [begin + 0.5, end],
        ])  # fmt: skip

    edit_header(rng, folder, change)


def header_names(rng: Rng, folder: Path) -> None:
    def change(header: dict[str, Any]) -> dict[str, Any] | None:
        name = rng.choice([name for name in header if name != "__metadata__"])
        match rng.randrange(7):
            case 0:
                header[rng.choice([*NAMES, *PATHS])] = header.pop(name)
            case 1:
                return {f"{rng.choice(['module.', '_orig_mod.'])}{key}": value for key, value in header.items()}
            case 2:
                header[rng.choice(["module.", "_orig_mod."]) + name] = dict(header[name])
            case 3:
                empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
                header.update({f"blocks.{i}.{rng.choice(NAMES[:9])}": empty for i in range(rng.choice([1, 2000]))})
            case 4:
                others = [{"a": "b"}, {"a": 1}, [], None, DEEP, {"x" * 9999: ""}, {"a": DEEP}]
                header["__metadata__"] = rng.choice(others)
            case 5:
                header[name] = any_value(rng)
            case 6:
                del header[name]
        return None

    edit_header(rng, folder, change)


def rewrite_tensors(rng: Rng, folder: Path) -> None:
    """A whole file with other shapes, types or values."""
    path = tensor_file(rng, folder)
    tensors = load_file(path)
    name = rng.choice(list(tensors))
    tensor = tensors[name]
    match rng.randrange(7):
        case 0:
            values = [math.nan, math.inf, -math.inf, 3e38, -1e30, 1e-40, 0.0, 65504.0, 65505.0, 1e6]
            if tensor.numel():
                tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice(values)
        case 1:
            tensor.fill_(rng.choice([math.nan, 1e38, -1e38, 0.0, 1e-45]))
        case 2:
            tensors[name] = tensor.T.contiguous() if tensor.ndim == 2 else tensor[None]
        case 3:
            shape = rng.choice([(), (0,), (1,), (3, 5), (1,) * 20, (*tensor.shape, 1), (0, 1 << 40)])
            tensors[name] = torch.zeros(shape)
        case 4:
            kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.bool, torch.complex64]
            kind = rng.choice([*kinds, torch.float8_e4m3fn, torch.float8_e5m2])
            which = list(tensors) if rng.random() < 0.5 else [name]
            tensors |= {key: tensors[key].to(kind) for key in which}
        case 5:
            other = rng.choice(list(tensors))
            tensors[name], tensors[other] = tensors[other], tensor.clone()
        case 6:
            tensors[rng.choice(["extra", *(n for n in NAMES if n.isprintable())])] = torch.zeros(2)
    save_file(tensors, path)


def declare_sizes(rng: Rng, folder: Path) -> None:
    """A configuration of a large model, and a file that declares its tensors; the data are missing, or a hole."""
    point = folder / POINT
    settings = json.loads((point / CONFIG).read_text())
    sizes = [64, 1 << 10, 1 << 16, 1 << 20, 1 << 24]
    model = {**settings["model"], "d_model": rng.choice(sizes), "n_head": 2, "n_layer": rng.choice([1, 2, 4])}
    model |= rng.choice([{}, {"head_dim": rng.choice(sizes)}, {"context": 1 << 24}, {"vocab_size": 1 << 24}])
    try:
        with torch.device("meta"):
            tensors = GPT(parse(GPTConfig, model)).state_dict()
    except (UserError, RuntimeError):
        return edit_model(rng, folder)
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    (point / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text)
    if end < 64 << 20:
        os.truncate(point / WEIGHTS, 8 + len(text) + end)
    write_settings(folder, {**settings, "model": model})


# --- Mutations: of settings ------------------------------------------------------------------------------------------


def write_settings(folder: Path, settings: dict[str, Any], both: bool = True) -> None:
    (folder / POINT / CONFIG).write_bytes(as_json(settings))
    if both:
        (folder / CONFIG_YAML).write_bytes(as_yaml(settings))


def slots(content: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of what JSON holds, and a key of it."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield content, key
        yield from slots(value)


def read_plain(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)


def plain_file(rng: Rng, folder: Path) -> Path:
    point = folder / POINT
    return rng.choice([folder / CONFIG_YAML, *(point / name for name in (CONFIG, STATE, CHECKSUMS, VOCABULARY))])


def edit_plain(rng: Rng, path: Path, change: Callable[[Any, Any], None]) -> None:
    content = read_plain(path)
    change(*rng.choice(list(slots(content))))
    path.write_bytes(as_yaml(content) if path.suffix == ".yaml" else as_json(content))


def edit_values(rng: Rng, folder: Path) -> None:
    def change(container: Any, key: Any) -> None:
        container[key] = any_value(rng)

    edit_plain(rng, plain_file(rng, folder), change)


def edit_keys(rng: Rng, folder: Path) -> None:
    def change(container: Any, key: Any) -> None:
        if isinstance(container, list):
            container[key : key + rng.choice([0, 1])] = [any_value(rng)] * rng.choice([0, 1, 2])
        elif rng.random() < 0.4:
            container[rng.choice(KEYS)] = any_value(rng)
        elif rng.random() < 0.5:
            container[rng.choice(KEYS)] = container.pop(key)
        else:
            del container[key]

    edit_plain(rng, plain_file(rng, folder), change)


def edit_model(rng: Rng, folder: Path) -> None:
    """Sizes and numbers of the model: one, or several at once."""
    settings = json.loads((folder / POINT / CONFIG).read_text())
    model = settings["model"]
    for key in rng.sample(sorted(model), rng.choice([1, 1, 2, 4])):
        if isinstance(model[key], dict):
            inner = rng.choice(sorted(model[key]))
            model[key][inner] = any_value(rng) if inner == "name" else rng.choice(NUMBERS)
        else:
            model[key] = rng.choice(NUMBERS)
    if rng.random() < 0.3:
        large = [1 << 12, 1 << 20, 1 << 24]
        model |= {"n_head": rng.choice(large), "head_dim": rng.choice([1, *large]), "d_model": rng.choice([8, *large])}
        model["n_kv_head"] = rng.choice([None, 1])
    write_settings(folder, settings, both=rng.random() < 0.7)


def edit_choices(rng: Rng, folder: Path) -> None:
    """The names of variants, of tokenizers and of what is chosen beside them."""
    settings = json.loads((folder / POINT / CONFIG).read_text())
    names = [
        *NAMES,
        *["reference", "linear", "sparse", "alibi", "rope", "learned", "gelu", "swiglu", "bpe", "muon", "hub"],
    ]
    places = [("model", "attention"), ("model", "position"), ("model", "feedforward")]
    places += [(part,) for part in ("tokenizer", "dataset", "optimizer", "schedule")]
    place = settings
    for key in rng.choice(places):
        place = place[key]
    match rng.randrange(3):
        case 0:
            place["name"] = rng.choice(names)
        case 1:
            place[rng.choice(KEYS)] = rng.choice(names)
        case 2:
            settings["logger"] = {rng.choice(names): rng.choice([{"name": rng.choice(names)}, None, "os.system", {}])}
    write_settings(folder, settings)
    if rng.random() < 0.3:
        vocabulary = json.loads((folder / POINT / VOCABULARY).read_text())
        vocabulary["name"] = rng.choice(names)
        (folder / POINT / VOCABULARY).write_bytes(as_json(vocabulary))


def edit_vocabulary(rng: Rng, folder: Path) -> None:
    path = folder / POINT / VOCABULARY
    content = json.loads(path.read_text())
    if "characters" in content and rng.random() < 0.8:
        letters = list(content["characters"])
        where = rng.randrange(len(letters))
        letters[where] = rng.choice(["", "\ud800", "\U0010ffff", "\0", letters[0], "ab", "é"])
        content["characters"] = "".join(rng.choice([letters, letters[::-1], letters * 2, []]))
    elif "tokens" in content and rng.random() < 0.8:
        tokens = content["tokens"]
        where = rng.randrange(len(tokens))
        match rng.randrange(4):
            case 0:
                tokens[where] = rng.choice(["", "\x00", tokens[0], "é" * 9, "x" * 30_000, None, 5, ["a"], "私"])
            case 1:
                del tokens[where]
            case 2:
                rng.shuffle(tokens)
            case 3:
                tokens.extend(f"token{i}" for i in range(rng.choice([1, 2000])))
    else:
        content[rng.choice([*content, *KEYS])] = any_value(rng)
    path.write_bytes(as_json(content))


# --- Mutations: of YAML ----------------------------------------------------------------------------------------------


def yaml_text(rng: Rng) -> str:
    """Bombs of names, tags that make objects, what looks like a number and is none, depth and length."""
    n = rng.choice([5, 30])
    nine = [", ".join([f"*a{i - 1}"] * 9) for i in range(1, n)]
    lists = "\n".join(["a0: &a0 [x]", *(f"a{i}: &a{i} [{names}]" for i, names in enumerate(nine, 1))])
    merged = "\n".join(["a0: &a0 {x: 1}", *(f"a{i}: &a{i} {{<<: [{names}]}}" for i, names in enumerate(nine, 1))])
    deep = "[" * 300 + "]" * 300
    inside = f"tags: &t [{'x, ' * 9}x]"
    return rng.choice([
        lists, merged, f"{lists}\nmodel: *a{n - 1}", f"{merged}\nmodel: *a{n - 1}", "a: &a [*a]", "&a a: *a",
        "model: &a {attention: *a}", "<<: {seed: 2}", "<<: 5", "? [a, b]\n: 1",
        f"{inside}\nlogger: {{wandb: {{name: wandb, tags: *t}}}}",
        "? {a: b}\n: 1", "a: !!python/object/apply:os.system ['touch harm']", "!!python/name:os.system",
        "a: !!python/object/new:harm.Harm []", "seed: !!int ''", "seed: !!int x", "debug: !!bool x", "clip: !!float x",
        "name: !!timestamp x", "name: !!binary '%'", "name: !!set {a, b}", "seed: !!omap [a: 1]", "name: !!str 5",
        "name: 2001-99-99", "seed: 0b_", f"seed: 0x{'f' * 5000}", f"0x{'f' * 5000}: 1", f"seed: {'1:' * 3000}1",
        "name: =", "seed: 1_000", "a: 'x", "a: [", "%YAML 9.9\n---\na: 1", "--- 1\n--- 2", "- 1", "5", "", "~", "\t: a",
        raw(DEEP), "a: " + "{b: " * 400 + "1" + "}" * 400, "a: " + "{b: " * 9_000, "- " * 3000, "? " * 3000,
        "\n".join(f"k{i}: 1" for i in range(9_000)), "x" * 60_000 + ": 1", '"\\uD800": 1', "a: \x1b[31m",
        "name: \u2028", f"a: {deep}", f"model: {deep}", f"dataset: {{name: text, path: {deep}}}",
    ])  # fmt: skip


def edit_yaml(rng: Rng, folder: Path) -> None:
    """All of config.yaml, or some lines after it."""
    path, text = folder / CONFIG_YAML, yaml_text(rng)
    before = path.read_text(encoding="utf-8") if rng.random() < 0.4 else ""
    keys = {line.partition(":")[0] for line in text.splitlines()}
    kept = [line for line in before.splitlines() if line.partition(":")[0] not in keys or line.startswith(" ")]
    path.write_bytes("\n".join([*kept, text, ""]).encode(errors="surrogatepass"))


# --- Mutations: of the folder ----------------------------------------------------------------------------------------


def put_links(rng: Rng, folder: Path) -> None:
    """Links, pipes and folders in the place of files; files in the place of folders."""
    outside = folder.parent / "outside"
    places = [*files(folder), folder / POINT, folder / "checkpoints", folder / "wandb", folder / "tensorboard"]
    path = rng.choice(places)
    is_folder = path.is_dir()
    kept = folder.parent / "outside" / "kept" / path.name
    if path.exists():
        kept.parent.mkdir(exist_ok=True)
        path.rename(kept)
    match rng.randrange(7 if not is_folder else 5):
        case 0:  # the thing itself, elsewhere
            path.symlink_to(kept if rng.random() < 0.5 else os.path.relpath(kept, path.parent))
        case 1:
            path.symlink_to(outside / "secret")
        case 2:
            path.symlink_to(rng.choice([path.name, "/dev/zero", "/proc/self/mem", "nowhere", "/etc/passwd", ".", ".."]))
        case 3:
            os.mkfifo(path)
        case 4:
            path.symlink_to(outside)
        case 5:
            path.mkdir()
        case 6:
            other = rng.choice(files(folder) or [outside / "secret"])
            path.symlink_to(os.path.relpath(other, path.parent))


def put_names(rng: Rng, folder: Path) -> None:
    """Files and checksums of hostile names, folders in which somebody seems to be at work."""
    point = folder / POINT
    match rng.randrange(4):
        case 0:
            sums = json.loads((point / CHECKSUMS).read_text())
            secret = hashlib.sha256((folder.parent / "outside" / "secret").read_bytes()).hexdigest()
            sums |= {rng.choice([*PATHS, *NAMES]): rng.choice([secret, "", None, 5, [], DEEP]) for _ in range(3)}
            (point / CHECKSUMS).write_bytes(as_json(sums))
        case 1:
            for name in rng.sample([n for n in NAMES if n not in ("", ".", "..")], 3):
                with suppress(OSError, ValueError):
                    (point / name).write_bytes(b"x")
        case 2:
            names = ["step_00000003", "step_99999999", "step_٠٠٠٠٠٠٠٣", "step_00000001\n", ".saving-x", ".removing-y"]
            name = rng.choice(names)
            other = folder / "checkpoints" / name
            match rng.randrange(4):
                case 0:
                    shutil.copytree(point, other)
                case 1:
                    other.mkdir()
                    os.mkfifo(other / ".at-work")
                case 2:
                    other.symlink_to(folder.parent / "outside")
                case 3:
                    other.write_bytes(b"")
        case 3:
            names = ["step_00000009", "step_2", "step_000000000000000000002", "other"]
            point.rename(point.with_name(rng.choice(names)))


def edit_metrics(rng: Rng, folder: Path) -> None:
    path = folder / "metrics.csv"
    header = path.read_text().splitlines()[0]
    row = "1" + "," * header.count(",")
    path.write_bytes(
        rng.choice([
            f"{header}\n{'9' * 5000}{row[1:]}\n", f"{header}\n{'x' * 200_000}{row[1:]}\n", f'{header}\n"{row}\n',
            f"{header}\n٣{row[1:]}\n²{row[1:]}\n", f"{header}\n-1{row[1:]}\n1.5{row[1:]}\nnan{row[1:]}\n", "step\n1\n",
            f"{header},{header}\n{row},{row}\n", "\n\n\n", "step," * 3000, "=cmd|' /C calc'!A0\n", f"{header}\n\0\n",
            f"{header}\n{row}\n" * 3, "\n".join([header, *[row] * 20_000]), "loss\n1\n", "\x1b[31m,\u2028\n1,2\n",
        ]).encode(errors="surrogatepass")
    )  # fmt: skip


KINDS: dict[str, Change] = {
    "bits flipped": flip_bits,
    "files truncated": truncate,
    "bytes moved, added": splice,
    "files replaced": replace_file,
    "files grown": grow,
    "files missing": remove,
    "tensors: header length": header_lengths,
    "tensors: shapes": header_shapes,
    "tensors: types": header_dtypes,
    "tensors: offsets": header_offsets,
    "tensors: names": header_names,
    "tensors: written anew": rewrite_tensors,
    "tensors: declared sizes": declare_sizes,
    "settings: values": edit_values,
    "settings: keys": edit_keys,
    "settings: sizes": edit_model,
    "settings: choices": edit_choices,
    "vocabulary": edit_vocabulary,
    "YAML": edit_yaml,
    "links, pipes": put_links,
    "names": put_names,
    "metrics": edit_metrics,
}


def seal(folder: Path) -> None:
    """Make the checksums right again, as someone who means harm would; those of links too."""
    for point in (folder / "checkpoints").glob("step_*"):
        with suppress(OSError):
            there = [p for p in point.iterdir() if p.is_file() and p.name != CHECKSUMS and p.stat().st_size < 1 << 30]
            sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in there}
            if not (point / CHECKSUMS).is_symlink() and not (point / CHECKSUMS).is_dir():
                if (point / CHECKSUMS).is_fifo():
                    continue
                (point / CHECKSUMS).write_bytes(as_json(sums))


class Case(NamedTuple):
    """A mutated folder."""

    number: int
    kind: str
    """What was mutated; of several the first."""
    folder: Path
    size: int
    """Bytes of its files."""


def make_case(number: int, bases: Path, place: Path, seed: int = SEED) -> Case:
    """The folder of that number, in `place`, beside a folder `outside` that nothing may reach."""
    rng = random.Random(f"{seed}/{number}")
    kinds = list(KINDS)
    kind = kinds[number % len(kinds)]
    shutil.rmtree(place, ignore_errors=True)
    folder = place / "run"
    shutil.copytree(bases / rng.choice(list(BASES)), folder)
    (place / "outside").mkdir()
    (place / "outside" / "secret").write_text('{"seed": 1}')
    others = [rng.choice(kinds)] if rng.random() < 0.2 else []
    sealed, told_apart = rng.random() < 0.8, kind in ("names", "links, pipes") and rng.random() < 0.5
    KINDS[kind](rng, folder)
    for second in others:
        with suppress(Exception):  # it may find nothing left of what it is about
            KINDS[second](rng, folder)
    if sealed and not told_apart:
        seal(folder)
    size = sum(path.stat().st_size for path in files(place))
    return Case(number, kind, folder, size)
