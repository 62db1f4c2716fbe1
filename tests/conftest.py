"""What all tests share."""

import gc
import multiprocessing

import pytest
import torch

pytest_plugins = ["tests.seeds"]

gc.disable()  # nothing that is imported or collected becomes garbage


def pytest_collection_finish():
    """Leave those million objects out of every later look for garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small products gain nothing from threads; training is the same to the last bit on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def forked(monkeypatch):
    """What is spawned here is forked from a server with torch imported, which takes seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch.distributed.tensor"])
    for module in (multiprocessing, torch.multiprocessing):
        monkeypatch.setattr(module, "get_context", lambda *_: context)
