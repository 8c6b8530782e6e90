"""What is known of a data set before it is read: where it is from and what must be in it."""

from __future__ import annotations

from dataclasses import dataclass

from bootprob.exceptions import DataError

__all__ = ["DatasetError", "File", "OpenML", "Source"]


class DatasetError(DataError):
    """A data set is unknown, not at hand, or not what it should be; the message says what to do."""


@dataclass(frozen=True)
class File:
    """A file of a data set, byte for byte.

    Attributes
    ----------
    name : str
        File name.
    sha256 : str
        Checksum that a download must have.
    urls : tuple of str
        Where it is downloaded from, the next one only if the one before fails.
    """

    name: str
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class OpenML:
    """The same table at OpenML, for data that UCI has withdrawn.

    Attributes
    ----------
    data_id : int
        Number of the data set; it stands for one version of it.
    labels : tuple of (str, str)
        Class at OpenML, class in the original file; empty where they are the same.
    """

    data_id: int
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Source:
    """A data set: its files, their format, and the counts that are checked whenever it is read.

    Attributes
    ----------
    name : str
        Key of the catalogue.
    title : str
        What it is called where it comes from.
    columns : tuple of str
        All columns of the raw file in order, the target too; empty where the form knows them.
    rows : int
        Rows that are read.
    prepared : int
        Columns after preparation, dummies among them.
    classes : tuple of (str, int)
        Class labels as the file has them, and how many rows each has.
    missing : int
        Cells that are missing in the rows read.
    positive : str or None
        The class whose rows are positive. None: all classes but the largest (thesis 3.3.1).
    target : str
        The column of the classes.
    categorical : tuple of str
        Columns that become dummies.
    left_out : tuple of str
        Columns that are no features.
    complete_rows : bool
        Whether rows with missing cells are left out.
    separator : str
        Between the cells; a blank stands for any white space.
    header : tuple of str
        What the target's cell of a first line says that is a header; a copy may lack that line.
    threshold : float or None
        The target is a number, and its classes are whether it is above this.
    form : {"table", "leukemia", "bundled"}
        How it is read: delimited text with one row a line, the files of Golub et al., or by
        scikit-learn, which has it.
    folder : str
        Folder of the files in a local collection; the name, unless two data sets share files.
    files : tuple of File
        Read one below the other; none for what scikit-learn has.
    openml : OpenML or None
        Tried if the files are not to be had.
    origin, licence, citation, note : str
        For people.

    Examples
    --------
    >>> from bootprob.datasets import CATALOG
    >>> source = CATALOG["wisconsin"]
    >>> source.rows, source.positives, source.n_positive
    (569, ('malignant',), 212)
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: int
    prepared: int
    classes: tuple[tuple[str, int], ...]
    origin: str
    licence: str
    citation: str
    missing: int = 0
    positive: str | None = None
    target: str = "class"
    categorical: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    complete_rows: bool = False
    separator: str = ","
    header: tuple[str, ...] = ()
    threshold: float | None = None
    form: str = "table"
    folder: str = ""
    files: tuple[File, ...] = ()
    openml: OpenML | None = None
    note: str = ""

    @property
    def positives(self) -> tuple[str, ...]:
        """The classes whose rows are positive; of equally large ones the first is negative."""
        if self.positive is not None:
            return (self.positive,)
        largest = max(self.classes, key=lambda pair: pair[1])[0]
        return tuple(label for label, _ in self.classes if label != largest)

    @property
    def n_positive(self) -> int:
        """Number of positive rows."""
        return sum(count for label, count in self.classes if label in self.positives)
