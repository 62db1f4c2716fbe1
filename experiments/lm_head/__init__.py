"""Which optimiser trains a language-model head best: tuned baselines, paired seeds, real text."""
