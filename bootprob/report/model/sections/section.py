"""What a section of a model's report is made of.

A section is a module of this folder with its numbers and its pictures, a template beside it of the
same name, and a line in `bootprob.report.model.sections.SECTIONS`, which has their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bootprob.report.svg import Picture
from bootprob.runtime.arrays import Floats

if TYPE_CHECKING:
    from bootprob.ensemble.estimator import BootstrapSVC
    from bootprob.report.model.subgrouping import Subgrouping
    from bootprob.tables.held_out import HeldOut
    from bootprob.tables.model import TableModel

__all__ = ["Drawn", "Measured", "Section"]


@dataclass(frozen=True)
class Measured:
    """A fitted model, for its numbers.

    Attributes
    ----------
    model : BootstrapSVC
    level : float
        Of the intervals.
    held_out : HeldOut or None
        Rows that took no part in training.
    probability : ndarray, shape (n,), or (n, K) of several classes
        Out of bag, by calibrators that did not see the row; of several classes they did.
    explained : BootstrapSVC or TableModel
        The same model, as its user knows its columns.
    training : array_like, data frame or None
        The rows of `fit`, as `explained` takes them, where they are at hand.
    by : Subgrouping or None
        What tells subgroups of rows apart.
    now : BootstrapSVC or None
        The model as it answers after it was recalibrated; None where it was not.
    """

    model: BootstrapSVC
    level: float
    held_out: HeldOut | None
    probability: Floats
    explained: BootstrapSVC | TableModel
    training: Any = None
    by: Subgrouping | None = None
    now: BootstrapSVC | None = None


@dataclass(frozen=True)
class Drawn:
    """The numbers of a report, for the pictures of one of its models.

    Attributes
    ----------
    content : dict
        Of the whole report.
    number : int
        Which of its models.
    """

    content: dict[str, Any]
    number: int

    @property
    def models(self) -> list[dict[str, Any]]:
        """The numbers of all models."""
        return self.content["models"]

    @property
    def model(self) -> dict[str, Any]:
        """The numbers of this one."""
        return self.models[self.number]

    @property
    def classes(self) -> tuple[str, str]:
        """Names of the negative and the positive class."""
        return self.content["data"]["negative_class"], self.content["data"]["positive_class"]

    def name(self, letter: str) -> str:
        """A prefix of ids that no other figure of the page has."""
        return f"{letter}{self.number}"


def _nothing(of: Measured | Drawn) -> dict[str, Any]:
    return {}


def _always(content: dict[str, Any]) -> bool:
    return True


@dataclass(frozen=True)
class Section:
    """A section of the page, and what it adds to the numbers.

    Attributes
    ----------
    name : str
        Anchor on the page, and name of the template.
    title : str
        In the list of contents.
    content : callable
        From a `Measured` to what the model's numbers gain, as JSON holds it but for arrays.
    pictures : callable
        From a `Drawn` to the pictures by name; None for one that cannot be drawn.
    is_shown : callable
        From the whole content to whether the page has the section.
    folder : str, default "sections"
        Where the template lies.
    """

    name: str
    title: str
    content: Callable[[Measured], dict[str, Any]] = _nothing
    pictures: Callable[[Drawn], dict[str, Picture | None]] = _nothing
    is_shown: Callable[[dict[str, Any]], bool] = _always
    folder: str = "sections"

    @property
    def template(self) -> str:
        """Its path among all templates."""
        return f"model/{self.folder}/{self.name}.html"
