"""Write the runs of `runs.csv` and `history/` into the store of `results`.

python -m experiments.lm_head.migrate FOLDER
"""

import csv
import json
import sys
from dataclasses import fields
from pathlib import Path

from experiments.lm_head.config import Run, Training
from experiments.lm_head.diagnostics import BANDS
from experiments.lm_head.record import SETTINGS, Record
from experiments.lm_head.results import Results

PLACE = ("corpus", "rowsep", "torch", "python", "machine", "commit", "date", "command")


def record(row: dict[str, str], history: dict) -> Record:
    """Return the record of a row and the history of the same run, which must agree."""
    training = Training(**{field.name: history.pop(field.name) for field in fields(Training)})
    run = Run(training=training, **{name: history.pop(name) for name in SETTINGS})
    for name, value in run.settings().items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        assert row[name] == text, (name, row[name], text)
    assert run.key == history.pop("key") == row["key"]
    bands = [row[f"val_loss_top_{end:g}"] for end in BANDS]
    return Record(
        run=run,
        band_losses=tuple(float(loss) for loss in bands if loss),
        diverged={"True": True, "False": False}[row["diverged"]],
        **{n: float(row[n]) for n in ("val_loss", "bits_per_byte", "seconds", "head_share")},
        history=history,
        **{name: row[name] for name in PLACE},
    )


def main(folder: Path) -> None:
    """Add every run that the store does not have."""
    store = Results(folder)
    with store.locked(), (folder / "runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["key"] not in store.losses():
                history = json.loads((folder / "history" / f"{row['key']}.json").read_text())
                store.add(record(row, history))
    print(f"{len(store.records())} runs in {', '.join(map(str, store.files()))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
