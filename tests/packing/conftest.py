"""Uninitialised memory is NaN when the packages ask for it, so that an output left unset fails."""

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
