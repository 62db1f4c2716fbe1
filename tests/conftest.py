"""What all tests share."""

import gc

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
