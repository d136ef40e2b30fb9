"""Who is slow, many times over: 8 ranks on this machine (a delay in a pair, in a rank, a late rank), and four hosts with
a rate limit on one. The bars are those of the project: 19 of 20 found, 49 of 50 healthy runs silent."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("CHAINERDOCTOR_LOCALISER_RUNS", "20"))
HEALTHY_RUNS = int(os.environ.get("CHAINERDOCTOR_LOCALISER_HEALTHY_RUNS", "50"))


def faults() -> str:
    """The text that puts faults into ranks, shared with the quick tests."""
    path = ROOT / "tests" / "bandwidth" / "test_allreduce_bench.py"
    spec = importlib.util.spec_from_file_location("quick_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FAULT


def verdict(text: str) -> dict:
    assert text.startswith("{"), text
    return {v["code"]: [f["where"] for f in v["findings"]] for v in json.loads(text)["verdicts"] if v["findings"]}


def locally(tmp_path: Path, fault: str) -> dict:
    (tmp_path / "sitecustomize.py").write_text(faults())
    environ = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "OMPI_"))},
        "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin",
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "FAULT": fault,
    }
    line = [sys.executable, "-m", "chainerdoctor", "allreduce-bench", "-n", "8", "--sizes", "8", "--seconds", "0.2"]
    done = subprocess.run(
        [*line, "--pairwise", "--format", "json"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return verdict(done.stdout or done.stderr)


@pytest.mark.parametrize(
    ("fault", "code", "where"),
    [("link:2-5", "CD605", "ranks 2–5"), ("rank:3", "CD604", "rank 3"), ("late:4", "CD606", "rank 4")],
)
def test_an_injected_fault_is_found_and_nothing_else(tmp_path: Path, fault: str, code: str, where: str) -> None:
    told = [locally(tmp_path, fault) for _ in range(RUNS)]
    right = [each for each in told if list(each) == [code] and len(each[code]) == 1 and each[code][0].endswith(where)]
    assert len(right) >= 0.95 * RUNS, told


def test_healthy_runs_are_silent(tmp_path: Path) -> None:
    told = [locally(tmp_path, "") for _ in range(HEALTHY_RUNS)]
    assert sum(each == {} for each in told) >= 0.98 * HEALTHY_RUNS, told


def test_a_host_behind_a_rate_limit_is_the_slow_node(tmp_path: Path) -> None:
    import hosts

    reason = hosts.missing()
    if reason:
        pytest.skip(f"several hosts: {reason}")
    network = {"FI_PROVIDER": "tcp", "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin"
    told = []
    with hosts.Hosts(
        tmp_path / "hosts", count=4, environ={f"node{n}": {"PYTHONPATH": str(ROOT)} for n in range(1, 5)}
    ) as made:
        for limited in (False, True):
            if limited:
                made.limit_rate("node3", 100)
            for _ in range(5):
                done = made.run(
                    "head", sys.executable, "-m", "chainerdoctor", "allreduce-bench", "--hosts", ",".join(made.nodes),
                    "--launcher", "mpiexec", "--sizes", "8", "--seconds", "0.2", "--pairwise", "--format", "json",
                    timeout=120, environ={"PYTHONPATH": str(ROOT), "PATH": path, **network},
                )  # fmt: skip
                told.append((limited, verdict(done.stdout or done.stderr)))
    assert [each for limited, each in told if not limited] == [{}] * 5
    assert [each for limited, each in told if limited] == [{"CD604": ["node3/rank 2"]}] * 5
