"""How an attribute of a fitted model is declared: what it is, who has it, what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bootprob.runtime.array_forms import ArrayForm

__all__ = ["Attribute", "array", "declare", "part"]


@dataclass(frozen=True)
class Attribute:
    """What is declared of an attribute, beside its name and type.

    One of `form`, `parts` and `kind` says what it is. What letters of shapes stand
    for is said where the attributes are declared, in `bootprob.ensemble.state`.

    Attributes
    ----------
    doc : str
        Its sentence in the documentation.
    form : ArrayForm or None
        Of an array.
    of_several : ArrayForm or None
        Of the same in a model of several classes, where that differs.
    parts : dict of str to ArrayForm, or None
        Of a dict of arrays.
    kind : type or None
        Of anything else.
    absent : {"", "None", "missing", "empty"}
        What it is where a model has none: None, no attribute, or an empty dict; "" where all have.
    of_pair : {"own", "same", "rows", "implied"}
        Whether a pair of several classes has its own, the whole model's, or some rows of that;
        "implied" is what follows from the pair.
    stored : str
        Name in model files, where that is older than the attribute's.
    only : {"", "two", "several"}
        Whether files of models of two or of several classes alone have it.
    whose : {"all", "machines", "classifiers"}
        Whether ensembles of support vector machines, or of other classifiers, alone have it.
    apart : bool
        Whether model files hold it neither as arrays nor as JSON: other models.
    shown : str
        Its type in the documentation, where that does not follow.
    """

    doc: str
    form: ArrayForm | None = None
    of_several: ArrayForm | None = None
    parts: dict[str, ArrayForm] | None = None
    kind: type | None = None
    absent: Literal["", "None", "missing", "empty"] = ""
    of_pair: Literal["own", "same", "rows", "implied"] = "own"
    stored: str = ""
    only: Literal["", "two", "several"] = ""
    whose: Literal["all", "machines", "classifiers"] = "all"
    apart: bool = False
    shown: str = ""


def array(form: str, doc: str, *, kinds: str = "f", several: str = "", **more: Any) -> Any:
    """Declare an array: alternatives of its shape, and after a colon its numbers."""
    shapes, _, numbers = form.partition(": ")
    numbers, optional = numbers or "finite", "absent" in more
    of_several = ArrayForm(kinds, (several,), numbers) if several else None
    own = ArrayForm(kinds, tuple(shapes.split()), numbers, optional=optional)
    return declare(doc, form=own, of_several=of_several, **more)


def declare(doc: str, **more: Any) -> Any:
    """Declare anything else, by what `Attribute` takes."""
    return Attribute(" ".join(doc.split()), **more)


def part(shapes: str, numbers: str = "finite", *, kinds: str = "f") -> ArrayForm:
    """Of a dict of arrays that may be empty."""
    return ArrayForm(kinds, tuple(shapes.split()), numbers, optional=True)
