"""What all tests share."""

import pytest
import torch

pytest_plugins = ["tests.seeds"]


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small products gain nothing from threads; training is the same to the last bit on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
