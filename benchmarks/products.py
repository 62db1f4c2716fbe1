"""The unit of every figure: the bare product `S S^T` of all rows with all rows."""

import time

import torch
from torch import Tensor


def bare(S: Tensor, block: int = 1024, every: int = 1) -> float:
    """Multiply every `every`-th block of rows with every block, nothing kept; the share done."""
    chosen = S.split(block)[::every]
    for rows in chosen:
        for columns in S.split(block):
            torch.mm(rows, columns.T)
    return sum(len(rows) for rows in chosen) / len(S)


def product_seconds(S: Tensor) -> float:
    """Processor seconds of one product of all rows with all rows, from every eighth block."""
    began = time.process_time()
    share = bare(S, every=8)
    return (time.process_time() - began) / share
