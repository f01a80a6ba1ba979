"""What `experiments.rows_of_sums` brings to the report."""

from experiments.report.program_report import ProgramReport

REPORT = ProgramReport(
    name="rows_of_sums",
    title="Rows behind sums over clients",
    about="The server gets the mean of the clients' updates of every round and nothing "
    "else, as secure aggregation has it. Given are the rows of all clients that an attack "
    "finds, every input right, and rows that it gives although no client has them, both "
    "in percent of all rows; pairs of rows of one client that it finds, in percent of all "
    "that there are, and pairs that are not, of those it names; the V-measure of its groups, "
    "rows not found being groups of their own.",
    names={
        "common_to_rounds": "what the spans of several rounds' updates have in common, "
        "and all that whole numbers tell of it",
        "exclusive_neurons": "neurons that one row of a round alone has switched on "
        "(SRATTA, Marchand et al. 2023)",
    },
    settings={
        "shuffled_": "trainings of k times all rounds are seen, each client's rows "
        "shuffled before every epoch",
        "fixed_": "the same, batches being the same in every epoch",
    },
)
