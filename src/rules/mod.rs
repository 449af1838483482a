//! Knowledge of the world as data: the YAML below `rules/`, and what evaluates it.
