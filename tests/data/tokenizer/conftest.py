import shutil

import pytest

from gpt.config import ROOT

CACHE = ROOT.parent / "shared" / "tiktoken_cache"


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """What tiktoken publishes, in a cache of our own: gpt2, cl100k_base and o200k_base can be had."""
    if not CACHE.is_dir():
        pytest.skip("needs shared/tiktoken_cache beside the checkout")
    copy = tmp_path_factory.mktemp("tiktoken")
    for file in CACHE.iterdir():
        shutil.copyfile(file, copy / file.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(copy))
        yield copy
