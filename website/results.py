"""Tables and figures of the site, made from the committed results when it is built.

A page asks for a table by a comment on a line of its own, `<!-- results: NAME -->`, and shows a
figure as an image `NAME.svg` in `results/`.
"""

import io
import re
from collections.abc import Callable
from functools import cache, partial

import matplotlib
from matplotlib.figure import Figure

from benchmarks import show as benchmarks
from experiments.codes import front, polish, random_start
from experiments.codes import show as codes
from experiments.codes.table import RESULTS as BEST_CODE
from experiments.lm_head import show as heads
from experiments.lm_head import summary
from experiments.lm_head.comparison import differences, summarise
from experiments.lm_head.presets import Preset
from experiments.lm_head.record import Record
from experiments.lm_head.statements import answer, statements
from experiments.minimal_diameter import show as minimal_diameter
from experiments.packing_quality import show as quality
from experiments.packing_quality.run import RESULTS as QUALITY
from experiments.report import details
from experiments.report.head import Experiment
from experiments.separation import show as separation
from experiments.separation.run import RESULTS as SEPARATION
from experiments.spherical_codes import show as spherical_codes
from experiments.steepest import show as steepest
from experiments.steepest.run import RESULTS as STEEPEST
from experiments.table import read
from website import command

ASKED = re.compile(r"^<!-- results: (\S+) -->$", re.MULTILINE)
TABLE = re.compile(r"(?<=\n\n)\||(?<=^\n)\|")
SPACES = {2: "The plane", 3: "Space"}


def filled(markdown: str) -> str:
    """Return a page with the tables it asks for.

    Raises:
        KeyError: there is no such table.
    """
    return ASKED.sub(lambda found: table(found.group(1)), markdown)


@cache
def table(name: str) -> str:
    """Return a table, or several with their headings, as Markdown.

    Tables get the class `results`.
    """
    return TABLE.sub("{.results}\n|", "\n" + TABLES[name]().strip("\n") + "\n")


@cache
def figure(name: str) -> str:
    """Return a figure as SVG, the same at every build."""
    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        FIGURES[name]().savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _separation_rows() -> list[dict[str, str]]:
    return [row for row in read(SEPARATION) if row["measure"] == "decrease"]


def _minimal_diameter() -> str:
    made = []
    for dim in minimal_diameter.dimensions():
        made += [f"### {SPACES.get(dim, f'Dimension {dim}')}", "", *minimal_diameter.table(dim), ""]
    return "\n".join(made)


@cache
def _runs(preset: str) -> tuple[Preset, list[Record]]:
    return summary.preset_with_runs(preset, heads.RESULTS)


def _comparison(preset: str) -> str:
    said = (f"- V = {one.vocab}: {one.text}" for one in statements(*_runs(preset)))
    return summary.markdown(summarise(*_runs(preset))) + "\n" + "\n".join(said)


def _differences(preset: str, reference: str) -> str:
    return summary.markdown_differences(differences(*_runs(preset), reference), reference)


def _details(preset: str) -> str:
    experiment = Experiment(*_runs(preset))
    lines = details.markdown(details.details(experiment))
    return f"{lines}\n{details.bound_sentence(experiment)}"


TABLES: dict[str, Callable[[], str]] = {
    "command": command.options,
    "separation": lambda: separation.table(_separation_rows()),
    "steepest": lambda: steepest.table(read(STEEPEST)),
    "quality": lambda: "\n".join(quality.quality_table(read(QUALITY))),
    "quality-cost": lambda: "\n".join(quality.fit_table(read(QUALITY))),
    "quality-fronts": lambda: "\n".join(quality.front_table(read(front.RESULTS))),
    "minimal-diameter": _minimal_diameter,
    "minimal-diameter-solvers": lambda: "\n".join(minimal_diameter.comparison()),
    "spherical-codes": lambda: "\n".join(spherical_codes.table()),
    "codes": lambda: codes.ratios(read(BEST_CODE)),
    "codes-fronts": lambda: codes.fronts(read(front.RESULTS)),
    "codes-polish": lambda: codes.polished(read(polish.RESULTS)),
    "codes-random-start": lambda: codes.random_starts(read(random_start.RESULTS)),
    "benchmarks-pairs": lambda: benchmarks.pairs(benchmarks.read("pairs")),
    "benchmarks-large": lambda: benchmarks.large(benchmarks.read("large")),
    "benchmarks-optimizers": lambda: benchmarks.optimizers(benchmarks.read("optimizers")),
    "heads-answer": lambda: f"**Answer.** {answer(*_runs('cpu'))}",
    "heads-cpu": partial(_comparison, "cpu"),
    "heads-cpu-details": partial(_details, "cpu"),
    "heads-ablation": partial(_comparison, "ablation"),
    "heads-ablation-details": partial(_details, "ablation"),
    "heads-ablation-rowwise": partial(_differences, "ablation", "rowwise_adam_80"),
    "heads-ablation-separation": partial(_differences, "ablation", "separation_65"),
}
FIGURES: dict[str, Callable[[], Figure]] = {
    "separation": lambda: separation.draw(_separation_rows()),
    "quality": lambda: quality.heat_map(read(QUALITY)),
    "fronts": lambda: quality.fronts(read(front.RESULTS)),
    "minimal-diameter": minimal_diameter.panels,
    "heads": lambda: heads.intervals(summarise(*_runs("cpu"))),
}
