"""What the script that counts files and moves counts."""

from threading import Thread

import numpy as np

from bootprob.intervals import check_level, wald
from docs.studies.structure.way import followed

HALF = np.array([0.5])


def test_a_call_into_another_file_is_a_move():
    with followed() as way:
        wald(HALF, 10, 0.9)
    assert way.files == {"bootprob/intervals/votes.py", "bootprob/intervals/levels.py"}
    assert way.moves == {("bootprob/intervals/votes.py", "bootprob/intervals/levels.py"): 1}


def test_what_stands_elsewhere_is_passed_over():
    with followed() as way:
        list(map(check_level, [0.9, 0.95]))
    assert way.files == {"bootprob/intervals/levels.py"}
    assert not way.moves


def test_threads_are_followed_and_nothing_afterwards():
    with followed() as way:
        thread = Thread(target=wald, args=(HALF, 10, 0.9))
        thread.start()
        thread.join()
    wald(HALF, 10, 0.9)
    assert way.moves.total() == 1
