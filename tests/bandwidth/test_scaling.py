"""Arithmetic of bandwidths: against nccl-tests' definitions, worked examples, and published scaling."""

import pytest

from chainerdoctor.scaling import Link, busbw_gbs, efficiency, fit, hierarchical_s, links_of, predictions, ring_s


def test_busbw_is_that_of_nccl_tests() -> None:
    # doc/PERFORMANCE.md: busbw = algbw · 2(n−1)/n. 8 ranks, 1 GB in 10 ms: 100 GB/s and 175 GB/s.
    assert busbw_gbs(10**9, 0.010, 8) == pytest.approx(175.0)
    assert busbw_gbs(10**9, 0.010, 1) == 0.0


def test_the_fit_finds_what_the_times_were_made_of() -> None:
    sizes = [8 * 4**k for k in range(12)]
    found = fit([(size, 5e-6 + size / 3e9) for size in sizes])
    assert found is not None
    assert found.latency_s == pytest.approx(5e-6, rel=1e-6)
    assert found.bandwidth_gbs == pytest.approx(3.0, rel=1e-6)
    assert found.knee_bytes == pytest.approx(15_000, rel=1e-6)
    assert found.error < 1e-9


def test_too_few_sizes_are_no_fit() -> None:
    assert fit([(8, 1e-6), (16, 1e-6), (8, 2e-6)]) is None
    assert fit([(8, 3e-6), (16, 2e-6), (32, 1e-6)]) is None  # faster the larger: no link does that


def test_a_ring_by_hand() -> None:
    # 4 ranks: 6 steps, each of α and a quarter of the bytes. 8 MB at 1 GB/s, α = 10 us: 6·10 us + 6·2 ms.
    assert ring_s(8e6, 4, Link(10e-6, 1.0)) == pytest.approx(6 * 10e-6 + 6 * 2e-3)
    assert ring_s(8e6, 1, Link(10e-6, 1.0)) == 0.0


def test_hierarchy_with_one_rank_a_node_is_a_ring_between_nodes() -> None:
    within, between = Link(1e-6, 100.0), Link(10e-6, 10.0)
    assert hierarchical_s(1e8, 16, 1, within, between) == pytest.approx(ring_s(1e8, 16, between))
    assert hierarchical_s(1e8, 1, 8, within, between) == pytest.approx(ring_s(1e8, 8, within))


def test_links_of_a_fit_give_the_measured_time_back() -> None:
    measured = fit([(size, 12e-6 + size / 5e9) for size in (64, 4096, 2**20, 2**24)])
    assert measured is not None
    assert ring_s(2**22, 4, links_of(measured, 4)) == pytest.approx(measured.time_s(2**22), rel=1e-6)


def test_published_scaling_of_chainermn_is_met_within_its_own_error() -> None:
    """ResNet-50, 128 P100 on 32 nodes, FDR InfiniBand: 79.16 % of linear over one GPU (arXiv 1710.11351, section 6).

    The inputs are that cluster's hardware, not fitted: 32 images a GPU at about 0.27 s a step, gradients of 102 MB in
    float32, FDR 4x at 6.8 GB/s shared by the four GPUs of a node, PCIe within. The model takes exchange only; what it
    leaves out (stragglers, input) makes the paper's figure lower: the prediction is above, by less than 20 points.
    """
    exchange = hierarchical_s(102.2e6, 32, 4, Link(10e-6, 6.0), Link(5e-6, 6.8))
    predicted = efficiency(0.27, exchange)
    assert 0.7916 <= predicted < 0.7916 + 0.20


def test_predictions_have_an_efficiency_only_with_a_compute_time() -> None:
    rows = predictions(10**8, None, Link(1e-6, 10.0), (2, 4))
    assert [row["ranks"] for row in rows] == [2, 4]
    assert "efficiency" not in rows[0]
    (row,) = predictions(10**8, 0.1, Link(0.0, 10.0), (2,))
    # 100 MB over 10 GB/s, half of it each way twice: 10 ms beside 100 ms of computing.
    assert row["efficiency"] == pytest.approx(100 / 110)
