"""What every program does before and after its own work.

* a `program` is a `command` whose settings become flags: `config`, `fields`, `option`,
  `image_flags`, `help_text`; `launch` starts it, `naming` has errors in its words;
* several `processes` of one run;
* the run's folder: `run_folder`, `output`, and which code it was (`source`);
* what is finished and gone on from: `autosave`, `stage_cache`, `checkpoints`,
  `json_values`; how long it took: `stages`;
* the screen: `console`, `screen_tables`.
"""
