"""Finished runs beside the published numbers: tables, figures, one page.

`programs` lists what each program brings, `cards` compares one run with a paper, `gains`
applies the rule of `fljax.verdicts`, and `page` fills the templates.
"""

COMMAND = "as a page: python -m experiments.report --runs={folder}"
# what a program says when its run is done
