"""What the intervals of the comparison support, in sentences made from the runs alone."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.lm_head.comparison import (
    ROW_NORM,
    Interval,
    Line,
    best_adamw,
    progress,
    summarise,
)
from experiments.lm_head.config import Method
from experiments.lm_head.presets import Preset
from experiments.lm_head.record import Record

States = Mapping[tuple[int, str], str]
"""How far each method is, by vocabulary size and name."""


class Statement(NamedTuple):
    """A sentence that the finished runs of one training support."""

    vocab: int
    text: str


def answer(preset: Preset, records: Sequence[Record]) -> str:
    """Return one sentence: which method beats the best-tuned AdamW by the most, and at which sizes.

    Of the methods whose 95 % interval lies below zero it names that of least mean difference.
    """
    lines, states = summarise(preset, records), _states(preset, records)
    sizes: dict[tuple[str | None, str | None], list[str]] = {}
    for vocab, group in _by_vocab(lines, states).items():
        adamw = best_adamw((line.name, line.seeds, line.loss) for line in group)
        better = [line for line in group if line.to_adamw.verdict == "better"]
        best = min(better, key=lambda line: line.to_adamw.mean, default=None)
        at = f"at V = {vocab}"
        if best is not None:
            one = best.to_adamw
            half = one.high - one.mean
            at = f"{-one.mean:.4f} ± {half:.4f} nats a token {at} ({one.pairs} seeds)"
        named = None if best is None else _named(best.name, vocab, states, preset.table)
        against = None if adamw is None else _named(adamw, vocab, states, preset.table)
        sizes.setdefault((against, named), []).append(at)
    clauses = []
    for (adamw, best), where in sizes.items():
        listed = " and ".join(where)
        reference = f"the best-tuned AdamW ({adamw})"
        if adamw is None:
            clauses.append(f"no AdamW has finished a seed {listed}, so nothing is compared there")
        elif best is None:
            clauses.append(f"no method beats {reference} {listed}")
        else:
            clauses.append(f"{best} beats {reference} by the most: {listed}, with 95 % intervals")
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}."


def statements(preset: Preset, records: Sequence[Record]) -> list[Statement]:
    """Return what the intervals support, by training: against AdamW, row norm, and what is open.

    A method that has not finished all seeds is named with how many it has.
    """
    states = _states(preset, records)
    found = []
    for vocab, group in _by_vocab(summarise(preset, records), states).items():
        adamw = best_adamw((line.name, line.seeds, line.loss) for line in group)
        row_norm = next((line.name for line in group if line.name == ROW_NORM), None)
        against_adamw = [(line.name, line.to_adamw) for line in group if line.name != adamw]
        against_row_norm = [
            (line.name, line.to_row_norm) for line in group if line.name != ROW_NORM
        ]
        texts = []
        if adamw is None:
            texts.append("No seed of AdamW is finished, so nothing is compared with it.")
        else:
            reference = f"the best AdamW ({_named(adamw, vocab, states, preset.table)})"
            texts += _verdicts(reference, against_adamw, vocab, states, preset.table)
        if row_norm is None:
            texts.append(
                "No seed of row normalisation is finished, so nothing is compared with it."
            )
        else:
            reference = _named(row_norm, vocab, states, preset.table)
            reference = reference[0].lower() + reference[1:]
            texts += _verdicts(reference, against_row_norm, vocab, states, preset.table)
        unfinished = [
            f"{preset.table[name].title} ({state})"
            for (its_vocab, name), state in states.items()
            if its_vocab == vocab and state != "finished"
        ]
        if unfinished:
            texts.append(f"Not finished: {'; '.join(unfinished)}.")
        found += [Statement(vocab, text) for text in texts]
    return found


def _states(preset: Preset, records: Sequence[Record]) -> dict[tuple[int, str], str]:
    return {(one.vocab, one.name): one.state for one in progress(preset, records)}


def _by_vocab(lines: Sequence[Line], states: States) -> dict[int, list[Line]]:
    """The methods with finished seeds, for every vocabulary size of the preset."""
    return {
        vocab: [line for line in lines if line.vocab == vocab and line.seeds > 0]
        for vocab in dict.fromkeys(vocab for vocab, _ in states)
    }


def _named(name: str, vocab: int, states: States, table: Mapping[str, Method]) -> str:
    """The title of a method, with its state unless it is finished."""
    title, state = table[name].title, states[vocab, name]
    return title if state == "finished" else f"{title} ({state})"


def _verdicts(
    reference: str,
    compared: Sequence[tuple[str, Interval]],
    vocab: int,
    states: States,
    table: Mapping[str, Method],
) -> list[str]:
    """One sentence for each verdict of the intervals against one reference."""
    texts = []
    for verdict, said in (
        ("better", "Lower loss than"),
        ("worse", "Higher loss than"),
        ("not told apart", "Not told apart from"),
    ):
        parts = [
            _named(name, vocab, states, table) for name, one in compared if one.verdict == verdict
        ]
        if parts:
            texts.append(f"{said} {reference}: {'; '.join(parts)}.")
    return texts
