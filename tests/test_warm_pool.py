"""Judges are kept alive for the next click on Formgrader's button."""

import time
from types import SimpleNamespace

import pytest

from helpers.grading import warm_pool
from helpers.grading.pool import Batch

ONE, OTHER = Batch("04_scaling", 1), Batch("04_scaling", 2)


class Judges:
    """Stands in for a Pool."""

    def __init__(self, batch, jobs):
        self.code, self.ended = None, []
        self.judges = [SimpleNamespace(process=SimpleNamespace(poll=lambda: self.code))]

    def __enter__(self):
        return self

    def __exit__(self, kind=None, *exc):
        self.ended.append(kind)


@pytest.fixture(autouse=True)
def none_stays():
    yield
    warm_pool._let_go()


def used(batch=ONE, jobs=1):
    with warm_pool.warm_pool(Judges, batch, jobs) as pool:
        assert pool.ended == []
    return pool


def test_the_next_click_uses_the_same_judges():
    first = used()
    assert used() is first and first.ended == []


@pytest.mark.parametrize("changed", [(OTHER, 1), (ONE, 2)])
def test_judges_of_another_batch_are_ended(changed):
    first = used()
    assert used(*changed) is not first and first.ended == [None]


def test_judges_of_another_version_are_ended(monkeypatch):
    first = used()
    monkeypatch.setattr(warm_pool, "version_of", lambda lesson: "new")
    assert used() is not first and first.ended == [None]


def test_a_judge_that_died_is_not_used_again():
    first = used()
    first.code = -9
    assert used() is not first


def test_judges_that_failed_are_ended_at_once():
    with pytest.raises(KeyboardInterrupt), warm_pool.warm_pool(Judges, ONE, 1) as first:
        raise KeyboardInterrupt
    assert first.ended == [KeyboardInterrupt] and used() is not first


def test_judges_are_ended_after_a_while(monkeypatch):
    monkeypatch.setattr(warm_pool, "KEPT", 0.05)
    first = used()
    for _ in range(100):
        if first.ended:
            break
        time.sleep(0.05)
    assert first.ended == [None] and warm_pool._kept == []
