"""Times and memory, each as a ratio to a written baseline in the same run.

* `harness` and `recording` are of all of them; `problems`, `federations`, `victims` and
  `trainings` what they measure on;
* rounds: `rounds`, `engines` beside other simulators, `steps`, `scaling`, `exchange`;
  baselines as users write them: `torch_baseline`, `fedjax_baseline`, `flwr_baseline`,
  `pfl_baseline`, `opacus_baseline`;
* clipping and noise: `clipping`, `clipping_ways`, `draws`, and whole defenses:
  `local_iterations`; the device: `limits`;
* attacks: `attributes`, `attributes_baseline`, `trajectory`;
* no times, but how often something is said wrongly: `false_alarms`, `soundness`; and
  `peers`, tools beside ours.
"""
