"""Passes and solves hold few copies of the cloud: measured in a process of its own."""

import ctypes
import math
import multiprocessing
import sys

import pytest
import torch

from benchmarks.clouds import real_like
from benchmarks.machine import with_peak
from rowsep.packing import cloud, solve
from rowsep.packing.pairs import extremes, forces

ROWS, DIM = 3072, 1024
CLOUD = ROWS * DIM * 4 / 2**20  # MiB
TILES = 19.0  # MiB of tiles and other things that do not grow with the cloud
COPIES = {
    "exact pass": 1,  # rows made ready
    "forces": 2,  # and their sums
    "solve": 5,  # and the momentum, the newest iterate and the best one
}
TASKS = {
    "exact pass": lambda S: extremes(S),
    "forces": lambda S: forces(S, torch.reciprocal, near=1.0, far=math.inf),
    "solve": lambda S: solve(S, passes=3),
}
M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads resident memory from /proc")


def alone(task):
    """What a task returns in a process of its own, started without this one's memory."""
    context = multiprocessing.get_context()
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(there, task))
    process.start()
    there.close()
    found = here.recv()
    process.join()
    return found


def answer(pipe, task):
    torch.set_num_threads(1)
    pipe.send(task())


def peaks():
    """Of each task, the lesser of two, as pages of a library may be loaded in the first."""
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)  # what is freed is given back
    S = real_like(ROWS, DIM)
    for task in TASKS.values():
        task(S[:600, :16].contiguous())
    return {
        name: min(with_peak(lambda task=task: task(S))[1] for _ in range(2))
        for name, task in TASKS.items()
    }


def test_copies_of_the_cloud_that_are_held(forked):
    for name, peak in alone(peaks).items():
        copies = (peak - TILES) / CLOUD
        assert copies <= COPIES[name] + 0.1, (name, peak)
        assert copies > COPIES[name] - 2, (name, peak)  # the measurement sees them


def peak_of_many_tiles():
    S = torch.randn(32768, 16, generator=torch.Generator().manual_seed(0))
    cloud.ratio(S[:3000])
    return with_peak(lambda: cloud.ratio(S))[1]


def test_many_tiles_do_not_split_the_heap(forked):
    """As users have it, without a threshold of malloc; 528 tiles of 4 MiB once made 1.5 GiB."""
    assert alone(peak_of_many_tiles) < 300
