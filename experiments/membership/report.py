"""What `experiments.membership` brings to the report."""

from experiments.report.program_report import ProgramReport

REPORT = ProgramReport(
    name="membership",
    title="Membership inference on federated training",
    about="Of every client's pool of rows a random half is in each of many trainings. A "
    "passive adversary scores every row of the pool; a score is good where members have "
    "the higher ones. Given are the area under the ROC curve (0.5 by chance) and the "
    "members found at a false positive rate of 0.001 (by chance 0.1 %, and more of fewer "
    "than some thousand others, which stands beside it), over all rows of all trainings "
    "of a seed, with the Student-t 95 % interval over the seeds.",
    names={
        "gradient": "likelihood ratio of the row's gradient in what was sent, over "
        "rounds; knows no other row of the pool, only of the population, needs no shadow "
        "training",
        "gradient_joint": "the same for who knows the pool: the other rows are whitened "
        "away",
        "loss_threshold": "minus the loss of the last model seen (Yeom et al. 2018)",
        "lira": "likelihood ratio of the last model's confidence among shadow trainings "
        "with and without the row (Carlini et al. 2022)",
        "rmia": "the row's likelihood against that of the population, both relative to "
        "shadow trainings (Zarifzadeh et al. 2024)",
    },
    settings={
        "messages": "sees each client's messages; losses are of its last model",
        "sum": "sees the weighted sum of all messages of a round",
        "models": "sees the global models of all rounds",
        "final": "has the final model alone",
    },
)
