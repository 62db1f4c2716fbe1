"""Check and time `packing` on a GPU in one run: `python -m experiments.device_check`.

    python -m experiments.device_check [--small] [--device cuda|cpu] [--out device_check.json]

One JSON is written, anew after every stage. Stages of correctness hold what the device computes
against float64 on the CPU; stages of time hold passes over all pairs against bare products of the
same size, timed in the same rounds. A stage that fails, raises or overruns its budget is recorded,
the others still run, and the exit status is 1. The full run stays within eight minutes on a GPU;
`--small` runs every stage at tiny sizes on the CPU in seconds. docs/how-to/device.md explains the
figures.
"""
