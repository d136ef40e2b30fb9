"""Whole files: what they are recognised as, and that the answer does not depend on how they come."""

import gzip
import random
import re
from pathlib import Path

import pytest

from chainerdoctor.facts import Missing
from chainerdoctor.facts.log import (
    LogEvent,
    LogFile,
    LoggedGpu,
    LoggedIbPort,
    LoggedTopology,
    NcclCommunicator,
    NcclTestsTable,
)
from chainerdoctor.judging import judge
from chainerdoctor.logs import reading, recognise
from chainerdoctor.logs.gather import log_rules, read_logs
from chainerdoctor.logs.prefixes import Prefixes
from chainerdoctor.logs.scan import Scanner

FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures"
LOGS = FIXTURES / "logs"

KINDS = {
    "ibstatus.log": {"ibstat"},
    "kernel-dmesg-T.log": {"kernel"},
    "kernel-dmesg-raw.log": {"kernel"},
    "kernel-journal-precise.log": {"kernel"},
    "kernel-journal-short-iso.log": {"kernel"},
    "launcher-intel-mpi.log": {"launcher"},
    "launcher-openmpi5-tag.log": {"launcher", "Python"},
    "launcher-srun.log": {"launcher", "Python"},
    "nccl-2.10.log": {"NCCL"},
    "nccl-2.2-no-word.log": {"NCCL"},
    "nccl-2.21-nvls.log": {"NCCL"},
    "nccl-2.29-function-trace.log": {"NCCL"},
    "nccl-2.3-cu-files.log": {"NCCL"},
    "nccl-collector-stripped.log": {"NCCL"},
    "nccl-libfabric-ray.log": {"NCCL", "launcher"},
    "nccl-tests-old-error-column.log": {"nccl-tests"},
    "nothing-known.txt": set(),
    "smi-L-mig.log": {"nvidia-smi nvlink"},
    "smi-dmon.log": {"nvidia-smi dmon"},
    "smi-table-550.log": {"nvidia-smi"},
    "smi-xml.log": {"nvidia-smi xml"},
    "topo-spaces.log": {"nvidia-smi topo"},
}


def facts_of(path, kind):
    return [s.fact for s in read_logs([str(path)], utc_offset_s=0, now_s=0.0).all(kind)]


def found_in(path):
    verdicts = judge(read_logs([str(path)], utc_offset_s=0, now_s=0.0), log_rules())
    return {verdict.code for verdict in verdicts if verdict.findings}


def test_every_log_fixture_is_listed():
    assert {p.name for p in LOGS.iterdir()} == set(KINDS)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_recognised_as_what_it_is(name):
    files = facts_of(LOGS / name, LogFile)
    assert {kind for file in files for kind in file.kinds} == KINDS[name]
    if not KINDS[name]:
        (missing,) = facts_of(LOGS / name, Missing)
        assert missing.blind
        assert "no log of a known kind" in missing.detail


def test_a_fixture_of_one_rule_is_found_by_that_rule_among_all():
    for folder in sorted((FIXTURES / "rules").iterdir()):
        for path in folder.glob("found*"):
            if path.suffix in (".log", ".txt"):
                assert folder.name in found_in(path), path


def test_healthy_cases_give_no_error_of_any_rule():
    """What is clear for one rule can be a case of another, but these are healthy through and through."""
    for name in (
        "nccl-2.10.log",
        "nccl-2.21-nvls.log",
        "ibstatus.log",
        "smi-L-mig.log",
        "smi-dmon.log",
        "nccl-libfabric-ray.log",
    ):
        assert found_in(LOGS / name) == set(), name


def test_gzip_carriage_returns_and_block_size_change_nothing(tmp_path, monkeypatch):
    text = b"".join(p.read_bytes() for p in sorted(LOGS.iterdir()) if p.name.startswith(("nccl", "kernel", "launcher")))
    path = tmp_path / "a.log"

    def facts():
        scanner = Scanner(str(path), Prefixes(0, 2025))
        scanner.scan()
        return [f for f in scanner.facts() if not isinstance(f, LogFile)]

    path.write_bytes(text)
    plain = facts()
    path.write_bytes(gzip.compress(text))
    assert facts() == plain
    path.write_bytes(text.replace(b"\n", b"\r\n"))
    assert facts() == plain
    monkeypatch.setattr(reading, "BLOCK_BYTES", 64)
    path.write_bytes(text)
    assert facts() == plain


def test_a_line_means_the_same_whatever_digits_a_line_before_it_had(tmp_path):
    """Lines are remembered without their digits, so what was said of one holds for the other."""
    for folder in sorted((FIXTURES / "rules").iterdir()):
        for path in sorted(folder.glob("found*")):
            if path.suffix not in (".log", ".txt") or path.read_bytes()[:2] == b"\x1f\x8b":
                continue
            text = path.read_text()
            other = tmp_path / "twice.log"
            other.write_text(text + text)
            once = {(e.event, e.path.replace(str(path), "")) for e in facts_of(path, LogEvent)}
            assert {(e.event, e.path.replace(str(other), "")) for e in facts_of(other, LogEvent)} == once


def test_no_wording_depends_on_a_digit():
    for _, wording in recognise._ALL:
        pattern = re.sub(r"\\\d|\{\d+(?:,\d*)?\}|\(\?P<\w+>|\\d", "", wording.pattern.pattern)
        assert not re.search(r"\d", pattern), wording
        assert not re.search(r"\d", wording.stem), wording
        assert wording.stem == wording.stem.lower()


def test_lines_of_ranks_that_interleave_are_put_together(tmp_path):
    lines = (LOGS / "nccl-2.10.log").read_text().splitlines()
    by_process = {}
    for line in lines:
        by_process.setdefault(line.split(" ")[0], []).append(line)
    rng = random.Random(5)
    shuffled = []
    queues = [list(v) for v in by_process.values()]
    while any(queues):
        shuffled.append(rng.choice([q for q in queues if q]).pop(0))
    path = tmp_path / "shuffled.log"
    path.write_text("\n".join(shuffled))

    def shape(where):
        (communicator,) = facts_of(where, NcclCommunicator)
        return (
            communicator.finished,
            communicator.where,
            [(e.source, e.target, e.transport, e.channels) for e in communicator.edges],
            communicator.rings,
        )

    assert shape(path) == shape(LOGS / "nccl-2.10.log")


def test_versions_that_differ_between_files_are_one_finding(tmp_path):
    for number, version in enumerate(("2.18.5+cuda12.2", "2.21.5+cuda12.4")):
        (tmp_path / f"{number}.log").write_text(f"gpu-{number}:1:2 [0] NCCL INFO NCCL version {version}\n")
    paths = [str(tmp_path / "0.log"), str(tmp_path / "1.log")]
    verdicts = {v.code: v for v in judge(read_logs(paths, now_s=0.0), log_rules())}
    assert len(verdicts["CD350"].findings) == 1
    assert not {v.code: v for v in judge(read_logs(paths[:1], now_s=0.0), log_rules())}["CD350"].findings


def test_an_unknown_file_among_known_ones_is_told_and_keeps_the_rest_judged():
    snapshot = read_logs([str(LOGS / "nothing-known.txt"), str(LOGS / "kernel-dmesg-T.log")], now_s=0.0)
    verdicts = {v.code: v for v in judge(snapshot, log_rules())}
    assert verdicts["CD261"].findings
    assert verdicts["CD080"].blind
    assert [v.code for v in verdicts.values() if v.blind] == ["CD080"]


def test_table_values_and_their_lines():
    one, two = facts_of(LOGS / "smi-table-550.log", LoggedGpu)
    assert (one.name, one.values["volatile uncorr. ecc"], one.values["perf"]) == ("NVIDIA A100-SXM4-40GB", "0", "P0")
    assert (two.gpu, two.values["volatile uncorr. ecc"], two.lines["volatile uncorr. ecc"]) == (
        "GPU1 00000000:3B:00.0",
        "7",
        13,
    )


def test_xml_has_the_names_of_q():
    (gpu,) = facts_of(LOGS / "smi-xml.log", LoggedGpu)
    assert gpu.values["remapped rows.pending"] == "Yes"
    assert gpu.values["ecc errors.volatile.dram uncorrectable"] == "2"


def test_matrix_with_spaces_and_a_legend_of_cards():
    (matrix,) = facts_of(LOGS / "topo-spaces.log", LoggedTopology)
    assert matrix.devices == ("GPU0", "GPU1", "mlx5_2")
    assert matrix.paths["GPU0 GPU1"] == "NV12"
    assert matrix.paths["GPU1 mlx5_2"] == "SYS"


def test_port_of_ibstatus():
    (port,) = facts_of(LOGS / "ibstatus.log", LoggedIbPort)
    assert (port.device, port.state, port.physical, port.rate_gbps) == ("mlx5_0", "ACTIVE", "LinkUp", 100.0)


def test_an_error_column_of_differences_counts_no_wrong_elements():
    (table,) = facts_of(LOGS / "nccl-tests-old-error-column.log", NcclTestsTable)
    assert table.wrong is None
    assert table.sizes == (8, 16)
    assert table.average_gbps == 0.0012


def test_control_characters_of_a_log_do_not_reach_a_finding(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(
        b"gpu-a:1:2 [0] init.cc:1 NCCL WARN Duplicate GPU detected : rank 1\x07\x08\x9b2J and rank 0 both\n"
    )
    for verdict in judge(read_logs([str(path)], now_s=0.0), log_rules()):
        for finding in verdict.findings:
            assert all(c.isprintable() for e in finding.evidence for c in e.seen)
