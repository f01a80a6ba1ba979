"""Finished runs beside the published numbers: tables, figures, one page.

`programs` lists what each program brings, `cards` compares one run with a paper, `gains`
applies the rule of `fljax.verdicts` to what was `measured`, and `page` fills the templates.

* runs: `finished` and their `facts`; `kept` ones, `kept_rows`, `agreement`, `commands`;
  the papers' numbers: `published`, `reproduction`, `program_report`;
* what is said: `in_short`, `claims`, `cases`, `defenses`, `curves`, `correlations`,
  `audited`;
* what is shown: `program`, `lines`, `tables`, `rendering`, `markdown`, `svg`, `scalars`,
  `figures`; `documents` are the site's.
"""

COMMAND = "as a page: python -m experiments.report --runs={folder}"
# what a program says when its run is done
