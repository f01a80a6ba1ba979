"""Trainings of clients who have rows of a table, as flags say.

`experiments.aia`, `membership`, `rows` and `choose_defense` train and attack these.

* `settings`: the flags;
* `clients`, `dealing`: data, encoded and dealt; `targets` is the truth;
* `schedules`, `problem`, `federation`: who trains when, what is trained, the training;
* `defense`, `defense_config`, `budgets`: what it trains with.
"""
