"""From out-of-bag scores and votes to probabilities.

`CALIBRATORS` has one class for each name that the parameter ``calibration`` takes. All are fitted
to out-of-bag scores and keep a `Calibrator`'s form: ``fit``, ``predict``, ``derivative``.
`choose_calibration` is what ``calibration="auto"`` does. Beside other packages:
docs/calibration.md.
"""

from typing import TYPE_CHECKING

from bootprob.runtime.late_names import late_names

if TYPE_CHECKING:
    from bootprob.calibration.beta import Beta
    from bootprob.calibration.choice import (
        CALIBRATORS,
        Calibrator,
        choose_calibration,
        held_out_losses,
    )
    from bootprob.calibration.isotonic import Isotonic
    from bootprob.calibration.replicates import sigmoid_replicates
    from bootprob.calibration.sigmoid import Sigmoid
    from bootprob.calibration.venn_abers import VennAbers
    from bootprob.calibration.votes import ScoreAndVoteSigmoid, VoteSigmoid, vote_logits

__all__ = [
    "CALIBRATORS",
    "Beta",
    "Calibrator",
    "Isotonic",
    "ScoreAndVoteSigmoid",
    "Sigmoid",
    "VennAbers",
    "VoteSigmoid",
    "choose_calibration",
    "held_out_losses",
    "sigmoid_replicates",
    "vote_logits",
]

__getattr__ = late_names(
    __name__,
    {
        "CALIBRATORS": "choice",
        "Beta": "beta",
        "Calibrator": "choice",
        "Isotonic": "isotonic",
        "ScoreAndVoteSigmoid": "votes",
        "Sigmoid": "sigmoid",
        "VennAbers": "venn_abers",
        "VoteSigmoid": "votes",
        "choose_calibration": "choice",
        "held_out_losses": "choice",
        "sigmoid_replicates": "replicates",
        "vote_logits": "votes",
    },
)
