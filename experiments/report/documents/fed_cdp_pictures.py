"""Pictures of Wei et al.: accuracy of Fed-CDP, and how much noise hides."""

from experiments.fed_cdp.published import ACCURACY, AS_CODED, FINAL, TUNED
from experiments.report.documents.curve_picture import Curve, Picture, Printed

_ON_MNIST = "Accuracy of Fed-CDP on MNIST, %"
_MADE, _CODED = "fed_cdp", f"fed_cdp{AS_CODED}"
_SIGMA, _CLIP = r"clip=4;sigma=([\d.]+)", r"clip=([\d.]+);sigma=[\d.]+"
_OF_100 = r"clients=(100);participating_percent=([\d.]+)"
_OF_1000 = r"clients=(1000);participating_percent=([\d.]+)"


def _trained(method: str, point: str, *results: str) -> Curve:
    """Accuracy of the last model of a method."""
    return Curve(results, f"{method} {FINAL} {point}", ACCURACY)


PICTURES = {
    "fed_cdp_sigma": Picture(
        _ON_MNIST, "sigma, at clip 4",
        {
            "as coded, 100 of 1,000": _trained(
                _CODED, _SIGMA, "fed_cdp.committed.table5",
                "fed_cdp.committed.table5.sigma1", "fed_cdp.committed.table5.sigma2",
                "fed_cdp.committed.table5.sigma4", "fed_cdp.committed.table5.sigma6",
            ),
            "as printed, tuned, 100 of 1,000": _trained(
                _MADE, _SIGMA, "fed_cdp.table5.mnist.thousand"
            ),
            "as printed, tuned, 10 of 100": _trained(
                _MADE, _SIGMA, "fed_cdp.table5.mnist"
            ),
            "the code's noise, tuned, 10 of 100": _trained(
                _CODED, _SIGMA, "fed_cdp.committed.table5.participants"
            ),
            "the paper": Printed("table5", _SIGMA),
        },
    ),
    "fed_cdp_clip": Picture(
        _ON_MNIST, "clip, at sigma 6 or the multiplier of the code",
        {
            "as coded, 100 of 1,000": _trained(
                _CODED, r"clip=([\d.]+);sigma=0.5", "fed_cdp.committed.table4.clip05",
                "fed_cdp.committed.table4.clip1", "fed_cdp.committed.table4.clip2",
                "fed_cdp.committed.table4.clip6", "fed_cdp.committed.table4.clip8",
                "fed_cdp.committed.table5",
            ),
            "as printed, tuned, 100 of 1,000": _trained(
                _MADE, _CLIP, "fed_cdp.table4.mnist.thousand"
            ),
            "as printed, tuned, 10 of 100": _trained(
                _MADE, _CLIP, "fed_cdp.table4.mnist"
            ),
            "the paper": Printed("table4", _CLIP),
        },
    ),
    "fed_cdp_participants": Picture(
        _ON_MNIST, "clients in a round",
        {
            "as coded, of 100": _trained(
                _CODED, _OF_100, "fed_cdp.committed", "fed_cdp.committed.percent"
            ),
            "as coded, of 1,000": _trained(
                _CODED, _OF_1000, "fed_cdp.committed.thousand_five",
                "fed_cdp.committed.thousand_ten", "fed_cdp.committed.thousand",
                "fed_cdp.committed.thousand_fifty",
            ),
            "its noise and clients, rate 0.003": _trained(
                _CODED, _OF_100, "fed_cdp.committed.tuned",
                "fed_cdp.committed.tuned_percent",
            ),
            "as printed, tuned, of 100": _trained(
                _MADE, _OF_100, "fed_cdp.table2", "fed_cdp.table2.twenty",
                "fed_cdp.table2.fifty",
            ),
            "as printed, tuned, of 1,000": _trained(
                _MADE, _OF_1000, "fed_cdp.table2.thousand_five",
                "fed_cdp.table2.thousand_ten", "fed_cdp.table2.thousand_twenty",
                "fed_cdp.table2.thousand_fifty",
            ),
            "the paper, of 100": Printed("table2", _OF_100),
            "the paper, of 1,000": Printed("table2", _OF_1000),
        },
        unit=0.01,
    ),
    "fed_cdp_clip_by_rate": Picture(
        "Accuracy of Fed-CDP on MNIST's validation rows, %",
        "clip times learning rate",
        {
            f"clip {clip}": Curve(
                ("fed_cdp.clip_by_rate",),
                rf"{_CODED} rate_(\S+) clip=({clip});sigma=0.5",
                TUNED,
            )
            for clip in ("0.5", "2", "8")
        },
    ),
    "noise_hides": Picture(
        "Similarity (SSIM) of MNIST images to what gradients tell, %",
        "sigma of Fed-CDP, at clip 4",
        {
            **{
                name: Curve(
                    (f"gradient_leakage.mnist.noise{variant}",),
                    r"fed_cdp leakage_type=2 fed_cdp\(clip=4, sigma=([\d.]+)\)",
                    "ssim",
                )
                for name, variant in (
                    ("knows noise and images", ""),
                    ("knows the clip alone", ".unaware"),
                )
            },
            "the mean image": Curve(
                ("gradient_leakage.mnist.noise",), "mean_image baseline .*", "ssim"
            ),
        },
        scale=100,
    ),
}  # fmt: skip
