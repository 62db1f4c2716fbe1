"""The command runs what is missing, once, and leaves nothing behind when it is killed."""

import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from experiments.lm_head import __main__ as command
from experiments.lm_head.results import Results

app = command.typer.Typer()
app.command()(command.main)


def test_a_bad_preset_is_refused():
    found = CliRunner().invoke(app, ["--preset", "tpu"])
    assert found.exit_code == 2 and "expected one of" in found.output


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_killed_command_leaves_no_process_behind_and_goes_on(sent, code, tmp_path):
    """The workers hold the pipe of the output: it ends with the last of them."""
    folder = tmp_path / "r"
    arguments = ["--preset", "smoke", "--results", str(folder), "--cache", str(tmp_path / "c")]
    arguments += ["--only", "row_norm", "--only", "adamw_95"]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.lm_head", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    while b" in " not in process.stdout.readline():  # the first run is finished, the next has begun
        assert process.poll() is None
    process.send_signal(sent)
    process.communicate(timeout=60)
    assert process.returncode == code
    done = Results(folder).records()
    assert done, "what was finished is kept"
    if sent == signal.SIGKILL:  # the harder one; each way takes seconds to start
        again = CliRunner().invoke(app, arguments)
        assert again.exit_code == 0, again.output
        assert Results(folder).records()[: len(done)] == done
        check_complete(folder, arguments)


def check_complete(folder, arguments):
    """Every run of two methods is there with all its figures, and is not run again."""
    records = Results(folder).records()
    assert len(records) == 8
    for record in records:
        assert record.val_loss < 10 and not record.diverged and len(record.band_losses) == 4
        assert all(record.history.values()) and record.seconds > 0 and record.torch
        assert record.command == "python -m experiments.lm_head --preset smoke"
    (path,) = Results(folder).files()
    assert path.name == "docs-512x32.jsonl.gz" and not list((folder / "checkpoints").glob("*"))
    before = path.read_bytes()
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0 and "AdamW, beta2" in again.output
    assert path.read_bytes() == before
