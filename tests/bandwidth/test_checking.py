"""Known numbers, their sums, and how far a right result may be off."""

import itertools

import pytest

numpy = pytest.importorskip("numpy", reason="the ranks of allreduce-bench need NumPy")

from chainerdoctor.workloads.allreduce import checking, timing  # noqa: E402


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_right_sum_is_right_in_any_order(ranks: int, dtype: str) -> None:
    arrays = [checking.numbers(numpy, 1000, rank, dtype) for rank in range(ranks)]
    expected = checking.exact_sum(numpy, 1000, ranks)
    allowed = checking.bound(dtype, ranks)
    for order in list(itertools.permutations(range(min(ranks, 4))))[:6]:
        total = numpy.zeros(1000, dtype)
        for rank in [*order, *range(len(order), ranks)]:
            total = (total + arrays[rank]).astype(dtype)
        assert checking.wrong(numpy, total, expected, allowed) == (0, None)


def test_one_wrong_bit_and_nan_are_seen() -> None:
    expected = checking.exact_sum(numpy, 100, 4)
    result = expected.astype("float32")
    result[17] = numpy.nextafter(result[17], numpy.float32(100))
    assert checking.wrong(numpy, result, expected, checking.bound("float32", 4)) == (1, 17)
    result = expected.astype("float32")
    result[99] = numpy.nan
    assert checking.wrong(numpy, result, expected, 1.0) == (1, 99)


def test_a_shifted_copy_is_wrong() -> None:
    expected = checking.exact_sum(numpy, 1300, 3)
    count, _ = checking.wrong(numpy, numpy.roll(expected, 1).astype("float32"), expected, 0.0)
    assert count > 1000


def test_the_bound_is_zero_while_integers_are_exact() -> None:
    assert checking.bound("float16", 8) == 0.0
    assert checking.bound("float32", 1024) == 0.0
    # 1,024 ranks of up to 6: 6,144 is beyond float16's 2,048, so rounding is allowed for.
    assert checking.bound("float16", 1024) == pytest.approx(1023 * 2**-11 * 6144)


def test_repeats_go_on_until_the_median_is_known_or_time_is_up() -> None:
    steady = timing.repeat(lambda k: [1e-3] * k, lambda n: n, 3, 0, 60.0)
    assert timing.FEWEST <= len(steady.times_s) < 50
    fixed = timing.repeat(lambda k: [1e-3] * k, lambda n: n, 2, 11, 60.0)
    assert len(fixed.times_s) == 11
    assert fixed.quantile(0.5) == 1e-3


def test_every_rank_makes_as_many_calls_as_rank_0() -> None:
    """agree() is where they meet: a rank whose own clock says otherwise still follows."""
    told = []

    def leader(number: int) -> int:
        told.append(number)
        return number

    first = timing.repeat(lambda k: [1e-3] * k, leader, 3, 0, 60.0)
    follow = iter(told)
    second = timing.repeat(lambda k: [9e-3] * k, lambda n: next(follow), 3, 0, 0.0)
    assert len(first.times_s) == len(second.times_s)
