"""What is compared with each paper, item by item, and what a reader must know of it."""

from experiments.report.documents import wei_items
from experiments.report.documents.item import PICTURES, SMALL, Item

_STAND_IN = "PUMS 2016 stands in for the census files, so that nothing is comparable."
_CLUSTERS = (
    f"{PICTURES} Clients whose rows are mostly of one label cluster by it; those of a "
    "Dirichlet draw overlap: silhouettes are about zero, though the nearest centroid is "
    "right several times as often as by chance."
)
PAPERS = {
    "diana2025": (
        Item(
            "Table 1, Medical",
            "aia.table1.medical",
            "The same data, clients and grids. Imputation from the other columns alone, "
            "which the paper sets aside (footnote 2), does as well as the last model.",
        ),
        Item("Table 1, Income-L", "aia.table1.income_l"),
        Item(
            "Tables 1 and 3, Income-L's setting on PUMS 2016",
            "aia.table1.pums2016",
            f"{_STAND_IN} Numbers beside it are of Table 3; runs without a defense, as in "
            "Table 1, stand below.",
        ),
        Item("Table 1, Income-A", "aia.table1.income_a"),
        Item(
            "Table 2, Medical",
            "aia.table2",
            "All clients are scored, not one; what the gradient's best cosine and ten "
            "active rounds reach differs much from seed to seed; the best of the rounds and "
            "rates that were tried stays a little below. PUMS 2016 stands in for "
            "Income-L below; Income-A could not be had.",
        ),
        Item(
            "Table 3, Medical",
            "aia.table3",
            "All clients are scored, not one. Imputation from the other columns does "
            "better than every adversary of the paper: with this budget none is shown to "
            "have anything from messages. Income-A could not be had.",
        ),
        Item(
            "Figure 1",
            "aia.fig1",
            f"{_STAND_IN} The paper says of regression that the server's last model tells at "
            "least as much as gradients, which is neither shown nor contradicted here at any "
            "size, and that the client's optimum tells far more, which is seen. A client's "
            "last message tells more than gradients with 128 rows, and less with 512.",
        ),
        Item(
            "Figure 2",
            "aia.toy.linear",
            "The paper has a picture; the numbers are those of the authors' notebook. It "
            "inverts 12 messages, the nearer to the client's optimum the larger the batch. "
            "Over many trainings that is not seen of 12 given messages: each batch has a "
            "few in which the square system goes far wrong, as some of the notebook's five "
            "do, and they make the means, so that verdicts on these say little. Among means of "
            "five of our trainings the notebook's have their place, at batches of 64 at the edge. Least "
            "squares on all messages is nearer, and the nearer to the optimum the larger the "
            "batch, in every training.",
        ),
        Item(
            "Figure 3",
            "aia.fig3",
            f"{_STAND_IN} As printed, the last message tells less than gradients where clients "
            "are alike and more where they are not, though far less than 20 points. That it "
            "tells more with every batch is not seen of the largest, that gradients fall to "
            "guessing with local epochs not at all. The active server's model tells far more "
            "than gradients: than those of honest rounds more than the 10 points over epochs "
            "that are printed, and by the mean the 30 over heterogeneity but where clients differ much; "
            "than those of the active rounds likewise, but less than 10 with five epochs.",
        ),
        Item(
            "Figure 4",
            "aia.fig4",
            "Generated rows in the shape of the census files, so that nothing is "
            "comparable. That small clients leak more by all methods is seen of an active "
            "server's model in that it reads the largest worst, the others alike, and at a "
            "fortieth of the rows of gradients by a small grid.",
        ),
        Item(
            "Figure 5",
            "aia.fig5",
            f"{_STAND_IN} As printed, the model tells more than gradients from every start.",
        ),
        Item(
            "Figure 6",
            "aia.fig6",
            f"{_STAND_IN} As printed, the model tells the more beyond gradients the longer "
            "the attack; of one round it is not shown to.",
        ),
        Item(
            "Theorem 1",
            "theory.theorem1",
            "Where every step draws its rows anew, as the proof takes it, Algorithm 2 keeps "
            "an error that more messages do not remove, while any bound in 1 / sqrt(n_c) falls "
            "and must be crossed: with the most messages that were tried, every training is "
            "above eq. (6) with a constant of 1, and below eq. (18), whose sigma is that of "
            "the noisiest sent model. "
            "The same regression reversed (ours) is consistent. With shuffled mini-batches, "
            "whose noise nearly cancels within an epoch, the error is far below eqs. (6) and "
            "(18) and falls with messages until it levels off. It grows with the rate and falls "
            "with the batch, as eq. (6) has it, while the last line of the proof, (18), does the "
            "opposite; with epochs it falls, as (18) does.",
        ),
    ),
    "xu_neglia2021": (
        Item(
            "Table 1",
            "lmra.table1",
            "The paper leaves rounds and start open; this setting and two more come near "
            "its last returned models on rows as LEAF's public code draws them "
            "(--data_generator=text: as its text says): verdicts on last_returned say no more "
            "than that. The paper's mapping, with one choice of Adam's rates and iterations, "
            "is not shown to gain over the last returned model, in none of the draws as much "
            "as is printed, and names fewer rows rightly than the majority would. A simulated "
            "client (ours) gains over both, with a prior like the one that rows are drawn from.",
        ),
        Item(
            "The setting of Table 1, searched",
            "lmra.search",
            "No table of the paper: which rounds and start it may have had.",
        ),
        Item(
            "Figure 1",
            "lmra.fig1",
            "The paper has curves, no numbers. As there, the mapping's loss falls with "
            "the batch size. With one choice of Adam's rates and iterations, on the clients' "
            "own rows the decoded model is nowhere shown to "
            "gain, and in places, with small batches, to lose less than a point. On held-out "
            "rows, a few dozen, it gains in two of twenty runs: after 2,000 rounds with the "
            "largest batches, from zero and from a random start, but not with five times as "
            "many messages, which may be chance; the local optimum itself is shown to gain "
            "there from the random start only. A seed draws which rows are held out, of the "
            "same people: intervals over seeds say nothing of other people.",
        ),
        Item("In small, without a file", "lmra.small", "Other data: a quick check."),
    ),
    "wei2021": wei_items.ITEMS,
    "rajani2023": (
        Item(
            "The meta-dataset of section IV-B, and Figure 5, MNIST",
            "label_distribution.mnist",
            f"{PICTURES} That distributions are told nearly perfectly is seen of the "
            "predictor, with one seed: far nearer than the mean distribution.",
        ),
        Item("Figure 2, MNIST", "label_distribution.fig2", _CLUSTERS),
        Item(
            "Figures 2 and 3, CIFAR-10",
            "label_distribution.fig3",
            f"{_CLUSTERS} Of clients whose rows are mostly of one label, animals and vehicles "
            "part more in the last layer than in those before, by silhouette, where the paper "
            "sees them in the first. Its pairs of similar labels are in no layer shown nearer "
            "than any two; of Dirichlet clients they are further in the last, where the paper, "
            "too, finds no order. All of one network of ours, for the paper names none.",
        ),
        Item("Figure 4, MNIST", "label_distribution.fig4", _CLUSTERS),
        Item(
            "Figure 6, MNIST and CIFAR-10",
            "label_distribution.fig6",
            f"{PICTURES} With Adam clients and noise on the gradients of steps its text "
            "holds on CIFAR-10 for 1e-3 and 1e-2, in one little training: 1e-3 costs nothing, "
            "1e-2 some accuracy, and neither hides anything. It does not for 1e-1, which "
            "costs nearly half of it, where the text has no learning at all, less on MNIST, "
            "and does not protect, which the paper takes it to. Plain SGD costs nothing with "
            "noise on steps, and loses accuracy with noise on messages, of one of which then no "
            "attack is shown to tell anything at 1e-2 and 1e-1, and little at 1e-3. With Adam and noise on "
            "messages, on "
            "MNIST, 1e-2 costs no accuracy; the predictor is then no nearer than the mean "
            "distribution on average, class gradients and posterior still are, far. 1e-1 costs much, "
            "and no attack is shown nearer than it on average; of clients who mostly have one "
            "label class gradients still tell which.",
        ),
        Item("In small, without a file", "label_distribution.digits", SMALL),
    ),
}
