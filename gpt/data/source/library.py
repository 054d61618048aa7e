"""Calls of Hugging Face's library `datasets`, and of what it stands on: silent, and with failures of one line."""

import codecs
import glob
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from gpt.config import UserError
from gpt.data.source.wording import innermost, kinds_of, listed, one_line
from gpt.files import FULL

if TYPE_CHECKING:
    from datasets import Dataset, DatasetBuilder, IterableDataset

T = TypeVar("T")

UNREACHABLE = {"ConnectionError", "TransportError", "ChunkedEncodingError", "Timeout", "TimeoutError"}
"""The names of the exceptions of builtins, requests, httpx and huggingface_hub that tell of no or a lost connection."""

BATCH = 256
"""Rows in memory at a time, where the library counts in rows: each may be a whole book."""

PATIENCE = 10.0
"""Seconds within which the Hub must answer that a data set is there."""


def open_builder(path: str, config: str | None, revision: str | None, **options: Any) -> "DatasetBuilder":
    """What of the library reads a data set.

    Args:
        path: the data set's name on the Hub, or a folder.
        config: its configuration; None where it has one alone.
        revision: a commit, branch or tag.
        options: of the loader of its files.

    Raises:
        UserError: it cannot be reached or read, or there is no such configuration; names those that there are.
    """
    import datasets

    with told(path):
        try:
            return datasets.load_dataset_builder(path, name=config, revision=revision, **options)
        except ValueError:
            names = datasets.get_dataset_config_names(path, revision=revision)
            if config in names or (config is None and len(names) < 2):
                raise
            wrong = f"there is no config {config!r}" if config else "there are several configs"
            raise UserError(f"{path}: {wrong}; set dataset.config to one of {listed(names)}") from None


def read_rows(loader: str, path: str, size: int = BATCH, **options: Any) -> Iterator[dict[str, list[Any]]]:
    """The rows that a loader of the library reads from a file, `size` at a time: columns and their values.

    A file on disk is read by a link with a plain name, since the library takes brackets and :: in a name for its own.

    Args:
        loader: its name, such as csv.
        path: a file, or a URL.
        size: rows at a time.
        options: of the loader.

    Raises:
        UserError: it cannot be read.
    """
    from datasets import load_dataset

    with TemporaryDirectory() as folder:  # also for the locks, which the library would leave in the user's home
        files = path
        if "://" not in path:
            link = Path(folder, "table.gz" if path.lower().endswith(".gz") else "table")
            link.symlink_to(Path(path).absolute())
            files = glob.escape(str(link))
        with told(path):
            rows = load_dataset(loader, data_files=files, split="train", streaming=True, cache_dir=folder, **options)
        yield from batches(rows, path, size)


def batches(rows: "IterableDataset | Dataset", where: str, size: int = BATCH) -> Iterator[dict[str, list[Any]]]:
    """The rows, `size` at a time: columns and their values.

    Raises:
        UserError: they cannot be read; `where` they are.
    """
    return guarded(rows.iter(batch_size=size), where)


def opened(path: str) -> BinaryIO:
    """A file, whatever its name, or what is behind a URL."""
    import fsspec

    return fsspec.open(path, "rb").open() if "://" in path else Path(path).open("rb")


def reach(path: str, revision: str | None, kept: bool = False) -> None:
    """Fail at once where the Hub cannot be reached: the library would try for half a minute.

    Args:
        path: the data set's name.
        revision: a commit, branch or tag.
        kept: whether what the library has downloaded and kept will do.

    Raises:
        UserError: there is no network.
    """
    import datasets
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    with told(path):
        try:
            HfApi().dataset_info(path, revision=revision, timeout=PATIENCE)
        except HfHubHTTPError:
            return  # an answer, be it that there is no such data set
        except Exception:
            if not (kept and Path(datasets.config.HF_DATASETS_CACHE, path.replace("/", "___")).is_dir()):
                raise


def check_split(builder: "DatasetBuilder", split: str, where: str, setting: str) -> None:
    """Refuse a split that a data set does not have, naming those that it has.

    Args:
        builder: of the data set.
        split: its name.
        where: the data set's name.
        setting: in which the split is named.

    Raises:
        UserError: there is no such split.
    """
    names = list(builder.config.data_files or builder.info.splits or [])
    if names and split not in names:
        raise UserError(f"{where}: there is no split {split!r}; set {setting} to one of {listed(names)}")


@contextmanager
def told(where: str) -> Iterator[None]:
    """Calls of the library within are silent, and whatever they raise is told in one line that begins with `where`.

    What they raise has no common class: it comes from pyarrow, pandas, fsspec, requests, httpx and the library itself.

    Raises:
        UserError: always in the place of another exception.
    """
    import datasets
    import huggingface_hub

    logs = [(package, package.utils.logging.get_verbosity()) for package in (datasets, huggingface_hub)]
    bars = not datasets.are_progress_bars_disabled()
    for package, _ in logs:
        package.utils.logging.set_verbosity(package.utils.logging.CRITICAL)
    datasets.disable_progress_bars()
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:  # which is no fault of what is read
            raise
        raise UserError(f"{where}: {_reason(error, where)}") from error
    finally:
        for package, verbosity in logs:
            package.utils.logging.set_verbosity(verbosity)
        if bars:
            datasets.enable_progress_bars()


def guarded(source: Iterable[T], where: str) -> Iterator[T]:
    """What `source` gives, each of its steps taken within `told`."""
    with told(where):
        iterator = iter(source)
    while True:
        with told(where):
            found = list(islice(iterator, 1))
        if not found:
            return
        yield from found


def _reason(error: Exception, where: str) -> str:
    """What went wrong and what to do."""
    kinds = kinds_of(error)
    if "DatasetGenerationError" in kinds and isinstance(error.__cause__, Exception):
        return _reason(error.__cause__, where)  # the library's own words say only that something failed
    if isinstance(error, UnicodeDecodeError) and not where.lower().endswith(".parquet"):
        return f"{undecodable(where, error)}; set dataset.encoding to what it is in, or dataset.errors to replace"
    if isinstance(error, LookupError) and "encoding" in str(error):
        return f"{error}; set dataset.encoding to one that Python knows, such as utf-8, latin-1 or utf-16"
    if "DatasetNotFoundError" in kinds:
        return f"{one_line(error)} Check dataset.path; if it is private or gated, log in with: hf auth login"
    if kinds & {"DatasetsError", "EmptyDatasetError"}:
        return one_line(error)
    if isinstance(error, FileNotFoundError) or getattr(getattr(error, "response", None), "status_code", None) == 404:
        return "there is no such file"
    if UNREACHABLE & kinds:
        return f"cannot be reached ({innermost(error)}); check the network, or use text that is on this machine"
    if "scripts are no longer supported" in str(error):
        return "it needs a script to be read, and none is run; try dataset.revision=refs/convert/parquet"
    if "EmptyDataError" in kinds or "file size is 0 bytes" in str(error):
        return "the file is empty"
    return f"cannot be read: {one_line(error)}"


def undecodable(path: str, error: UnicodeDecodeError) -> str:
    """What is wrong with a file's bytes, and where, which the error does not know: the first that is no text."""
    from fsspec.implementations.local import LocalFileSystem

    wrong = f"is no {error.encoding}"
    if not Path(path).is_file():
        return f"this {wrong}"
    decoder, before = codecs.getincrementaldecoder(error.encoding)(), 0
    with LocalFileSystem().open(path, "rb", compression="infer") as file:
        while block := file.read(1 << 20):
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block)
            except UnicodeDecodeError as exact:
                offset = before - pending + exact.start
                return f"byte {exact.object[exact.start]:#04x} at offset {offset} {wrong}"
            before += len(block)
    return f"the end {wrong}"
