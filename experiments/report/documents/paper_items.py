"""What is compared with each paper, item by item, and what a reader must know of it."""

from typing import NamedTuple


class Item(NamedTuple):
    """A table, figure or theorem of a paper.

    Attributes:
      title: its heading.
      result: name of the result, which is that of its flagfile.
      why: what a reader must know of the comparison, in a sentence or two; of a
        flagfile without a result its reason is said, too.
    """

    title: str
    result: str
    why: str = ""


_STAND_IN = "PUMS 2016 stands in for the census files, so that nothing is comparable."
_SMALL = "Other data, few clients and rounds: a quick check, not the paper's setting."
_PICTURES = "The paper has pictures, no numbers."
_CLUSTERS = (
    f"{_PICTURES} Clients whose rows are mostly of one label cluster by it; those of a "
    "Dirichlet draw overlap: silhouettes are about zero, though the nearest centroid is "
    "right several times as often as by chance."
)
_OPEN = (
    "The paper leaves clients and rates open. Noise is drawn as it is printed, in the "
    "fixed batches of the published code, for which epsilon at sigma = 6 is larger than "
    "the printed one."
)
_FEW = (
    f"{_OPEN} Ten of 100 clients are in a round, and, with one seed, 100 of 1,000, for "
    "which Table II prints about what is printed here."
)
_EARLY = (
    f"{_OPEN} Ten of 100 clients are in a round and 100 of 1,000, one seed each. Rates are "
    "compared where none is above guessing yet under strong noise, so that smaller ones may "
    "do better there."
)
_NOTEBOOK = (
    "With --sought=one types 0 and 1 are attacked as in the authors' notebook, by one "
    "image whose gradient shall be that of a batch. Theirs are eight faces of one person; "
    "of batches as clients have them it finds the first image of none. Here a search ends "
    "after ten iterations without progress, and counts as the paper's 300."
)
PAPERS = {
    "diana2025": (
        Item(
            "Table 1, Medical",
            "aia.table1.medical",
            "The same data, clients and grids. Imputation from the other columns alone, "
            "which the paper leaves out, does as well as the last model.",
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
            "active rounds reach differs much from seed to seed.",
        ),
        Item(
            "Table 3, Medical",
            "aia.table3",
            "All clients are scored, not one. Imputation from the other columns does "
            "better than every adversary of the paper: with this budget none is shown to "
            "have anything from messages.",
        ),
        Item("Figure 1", "aia.fig1", _STAND_IN),
        Item(
            "Figure 2",
            "aia.toy.linear",
            "The paper inverts 12 messages, by what is printed the better the larger the "
            "batch. Over thirty trainings that is not seen: each batch has a few in which "
            "the square system goes far wrong, as some of the five printed ones do, and they "
            "make the means. Least squares on all messages is nearer to the generating "
            "parameters in nearly every training.",
        ),
        Item("Figure 3", "aia.fig3", _STAND_IN),
        Item(
            "Figure 4",
            "aia.fig4",
            "Generated rows in the shape of the census files, so that nothing is "
            "comparable.",
        ),
        Item("Figure 5", "aia.fig5", _STAND_IN),
        Item("Figure 6", "aia.fig6", _STAND_IN),
        Item(
            "Theorem 1",
            "theory.theorem1",
            "Where every step draws its rows anew, as the proof takes it, Algorithm 2 keeps "
            "an error that more messages do not remove, while the bound falls: with the most "
            "messages that were tried, most seeds exceed it. The same regression reversed "
            "(ours) is consistent. With shuffled mini-batches, whose noise nearly cancels "
            "within an epoch, the error is far below the bound and falls with messages until "
            "it levels off; it does not depend on rate, batch and epochs as the bound does.",
        ),
    ),
    "xu_neglia2021": (
        Item(
            "Table 1",
            "lmra.table1",
            "The paper leaves rounds and start open; this setting comes near its last "
            "returned models on rows as LEAF's public code draws them "
            "(--data_generator=text: as its text says). The paper's mapping is not shown "
            "to gain anything there; a simulated client gains over the last returned "
            "model, and over naming the majority at 10 local steps, in fresh draws also at 5.",
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
            "the batch size. On the clients' own rows the decoded model is nowhere shown to "
            "gain. On held-out rows, a few dozen, it gains after 2,000 rounds with the "
            "largest batches and is not shown to elsewhere; the local optimum itself gains "
            "nothing there.",
        ),
        Item("In small, without a file", "lmra.small", "Other data: a quick check."),
    ),
    "wei2021": (
        Item(
            "Table I",
            "fed_cdp.table1",
            "Of rates, which the paper leaves open, two are tried over a few rounds and the "
            "larger is taken, so that a larger one may do better; on CIFAR-10 over more of "
            "them the smaller, so that a smaller one may. Adult and "
            "breast cancer are trained by 100 of 1,000 clients in a round, the others by 10 "
            "of 100, for which Table II prints less than Table I and is met on MNIST; "
            "CIFAR-10 by 100 of 1,000, too, with one seed. There accuracy stays far below the "
            "print without any defense.",
        ),
        Item(
            "Table II",
            "fed_cdp.table2",
            "K = 100 at 5 and 10 %, and, with one seed, with a defense at 20 %, with Fed-CDP "
            "at 50 %, K = 1,000 at 5, 10 and 20 %, without a defense at 50 %, too; those of "
            "10,000 clients take hours each. Noise is drawn as it is printed, sigma = 6, and "
            "rates are tried over a twentieth of the rounds, where there is one seed over a "
            "fifth. Without a defense the printed accuracies are reached, with one they are "
            "far away; the cell of 100 clients that Tables IV and V repeat with a longer "
            "trial is twice as accurate and still far below.",
        ),
        Item(
            "Tables II, IV and V, Fed-CDP as its published code has it",
            "fed_cdp.committed",
            "Noise multiplier 0.5, one draw after the mean, rate 0.05, shared buckets "
            "of rows, where the paper has 6, a draw for every example, no rate, two "
            "classes: in Tables II and IV nearer to the printed number than sigma = "
            "6, on CIFAR-10 but for clip 8 and with 100 of 1,000 clients only, not on breast "
            "cancer, where the two are not told apart; in Table V, on MNIST, "
            "further away from sigma = 2 on. Divided by the participants at a rate of "
            "0.003, which a search on another partition chose (not kept), the "
            "interval meets the print at 20 % of 100 clients, is too wide to tell at "
            "5 and 10 %, and is below it at 50 %; of 1,000 clients, "
            "with one seed, it is further below than the code. Table IV is "
            "a little above the print on Adult, at it or within two rows above on "
            "breast cancer, and a few points below on MNIST, with one seed; of Table "
            "V the multipliers up to 2 come out on Adult; on breast cancer intervals "
            "are too wide to tell from 2 on.",
        ),
        Item(
            "Propositions 1 and 2",
            "fed_cdp.propositions",
            "No numbers are published. A row of a random client is of a class nearly as "
            "often as a row of the data, exactly where all rows have equally many owners; "
            "the rows of one step together are not. Noise within "
            "the bound turns hardly a class, and the bound tells little: noise of any "
            "direction may be many times longer, and that of a step is, in trainings that "
            "work.",
        ),
        Item(
            "Clip by learning rate",
            "fed_cdp.clip_by_rate",
            "No table of the paper: which rate each clip of Table IV wants.",
        ),
        Item("Table III", "fed_cdp.table3"),
        Item("Table IV, breast cancer", "fed_cdp.table4.breast_cancer", _OPEN),
        Item("Table IV, Adult", "fed_cdp.table4.adult", _OPEN),
        Item("Table IV, MNIST", "fed_cdp.table4.mnist", _FEW),
        Item("Table IV, CIFAR-10", "fed_cdp.table4.cifar10", _EARLY),
        Item("Table V, breast cancer", "fed_cdp.table5.breast_cancer", _OPEN),
        Item("Table V, Adult", "fed_cdp.table5.adult", _OPEN),
        Item("Table V, MNIST", "fed_cdp.table5.mnist", _FEW),
        Item("Table V, CIFAR-10", "fed_cdp.table5.cifar10", _EARLY),
        Item(
            "Table VI",
            "accounting.table6",
            "Computed, not measured. Nearly all printed numbers are those of one release more "
            "than there are, the others a unit of the last digit away. What they promise, and "
            "of what noise, is said on the page on epsilon.",
        ),
        Item(
            "Table VII, MNIST",
            "gradient_leakage.mnist",
            f"{_NOTEBOOK} Ours, which whitens all images of a message together, finds all "
            "five digits of each of a few messages that were sent without a defense, and "
            "none under any.",
        ),
        Item(
            "Table VII, LFW",
            "gradient_leakage.lfw",
            f"All images of a client sought at once with 20 clients, in few iterations, by "
            f"L-BFGS that whitens no message. {_NOTEBOOK}",
        ),
        Item(
            "Figure 1",
            "gradient_leakage.fig1",
            f"{_PICTURES} As there, the gradient of one face, digit or object is the "
            "image. The paper also recovers a message of three faces; here L-BFGS reads "
            "little more than its labels, as of three objects, and a likeness of three "
            "digits. Four clients.",
        ),
        Item("Figure 3", "fed_cdp.fig3", _PICTURES),
        Item(
            "Figure 4",
            "gradient_leakage.fig4",
            f"{_PICTURES} Type 2 as there. Of messages, which the paper also reads without "
            "a defense and under DSSGD, L-BFGS reads no face here.",
        ),
        Item(
            "Figure 5, accuracy",
            "fed_cdp.fig5",
            f"{_PICTURES} 10 of 100 clients in a round, and, with one seed, the paper's 100 "
            "of 1,000. Hardly any accuracy is lost until nearly all entries are zeroed, with "
            "Fed-CDP, in the noise of its code, one seed, too.",
        ),
        Item(
            "Figure 5, leakage",
            "gradient_leakage.fig5",
            f"{_PICTURES} As there, digits are read while few entries are zeroed, under "
            "Fed-SDP as without a defense, and none under Fed-CDP.",
        ),
        Item("Training in small, without a file", "fed_cdp.digits", _SMALL),
        Item("Table VII in small, without a file", "gradient_leakage.digits", _SMALL),
    ),
    "rajani2023": (
        Item(
            "The meta-dataset of section IV-B, MNIST",
            "label_distribution.mnist",
            _PICTURES,
        ),
        Item("Figure 2, MNIST", "label_distribution.fig2", _CLUSTERS),
        Item(
            "Figures 2 and 3, CIFAR-10",
            "label_distribution.fig3",
            f"{_CLUSTERS} Of clients whose rows are mostly of one label, animals and "
            "vehicles part most in the last layer by silhouette, where the paper sees them "
            "in the first. Its pairs of labels are not measured.",
        ),
        Item("Figure 4, MNIST", "label_distribution.fig4", _CLUSTERS),
        Item(
            "Figure 6, MNIST and CIFAR-10",
            "label_distribution.fig6",
            f"{_PICTURES} With Adam clients and noise on the gradients of steps its text "
            "holds on CIFAR-10 in one little training: 1e-3 costs nothing, 1e-2 some accuracy, "
            "and neither hides anything; 1e-1 costs nearly half of it, where the text has no "
            "learning at all, less on MNIST, and does not protect, which the paper takes it "
            "to. With noise on messages, 1e-2 costs no accuracy and leaves the predictor no "
            "nearer than the mean distribution on average; at 1e-1 the class gradients are "
            "further away than it, too.",
        ),
        Item("In small, without a file", "label_distribution.digits", _SMALL),
    ),
}
