"""Attribute inference against federated training (Diana et al., AAAI-25).

* `program` and its `settings`, `adversary_config`, `active_config`, `knowledge_config`,
  `kinds` and `refusals`; a `sweep` runs several `pipeline`s, each of one `setup`;
* the training is of `experiments.tabular`; `saved` transcripts; `memory` and `listing` say
  what it would be;
* the `wall`, behind which is the `adversary`: `attacks` of the registry, `gradients` as
  the paper chooses them, `active` servers and the `oracle` (`single_client`, `tuning`),
  `knowledge` of less than everything;
* the truth: `population`, `strangers`, `controls`, `baselines`, `ceilings`;
* scores: `scoring`, `errors`, `posteriors`, `guesses`, `result_rows`, and whether a search
  stopped short of the `true_rows`;
* what is said: `results_table`, `client_table`, `privacy_report`, `closing`, `report`,
  `published`.
"""
