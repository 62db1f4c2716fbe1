"""Uninitialised memory is NaN when the packages ask for it, so that an output left unset fails."""

import os
import sys

import pytest
import torch

PACKAGE = "rowsep"


@pytest.fixture(autouse=True)
def poisoned_empty(monkeypatch):
    """Fill what `torch.empty`, `empty_like` and `new_empty` return to the packages with NaN."""

    def poison(original):
        def empty(*args, **kwargs):
            made = original(*args, **kwargs)
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.split(".")[0] == PACKAGE and made.is_floating_point():
                made.fill_(float("nan"))
            return made

        return empty

    monkeypatch.setattr(torch, "empty", poison(torch.empty))
    monkeypatch.setattr(torch, "empty_like", poison(torch.empty_like))
    monkeypatch.setattr(torch.Tensor, "new_empty", poison(torch.Tensor.new_empty))


@pytest.fixture
def generator():
    """A generator with a fresh seed, printed so that a failure can be repeated."""
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")
    return torch.Generator().manual_seed(seed)
