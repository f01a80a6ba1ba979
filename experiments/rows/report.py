"""What `experiments.rows` brings to the report."""

from experiments.report.program_report import ProgramReport

REPORT = ProgramReport(
    name="rows",
    title="Whole rows from messages",
    about="The adversary sees the gradient of one batch at a network that it knows, or the "
    "way of several local steps over it or its parts (--local_steps, --step_rows), or the "
    "gradients of a client's whole batch at the models of many rounds (--num_rounds), the "
    "number of rows and how the table is encoded: columns, categories, ranges. No target is "
    "given to it where the target is a class; with --num_rounds the range of targets is. "
    "Given are the cells that it reads (a category has to be right, a number to lie within "
    "0.319 standard deviations), whole rows with every cell right, and the batches whose "
    "rows give the message that came to rounding (of many rounds nine in ten of the "
    "messages), which the adversary can check itself.",
    names={
        "rows": "categories that lie in the span of the first layer's gradient, numbers "
        "that put the hidden units into the span of the second's; of many rounds, what "
        "makes the simulated gradients those that came",
        "gradient_matching": "TabLeak (Vero et al. 2023), to which the targets are told",
        "majority": "the mean row of the table for every row",
        "strangers": "as many rows of the table that are in no batch",
    },
    settings={"batch_": "rows of the batch"},
)
