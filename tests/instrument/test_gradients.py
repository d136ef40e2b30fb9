"""check-gradients names the true culprit in every sick program and says nothing about healthy ones."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chainerdoctor.captures import read_run, snapshot_of
from chainerdoctor.facts.gradients import GradientSeries, NumberBroke
from chainerdoctor.findings import CRASHED, FOUND
from chainerdoctor.instrumented import report_on_run

if sys.version_info >= (3, 12):
    pytest.skip("Chainer runs on Python 3.8 to 3.11 here", allow_module_level=True)
np = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).parent))
import faults  # noqa: E402

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "scripts"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every program of faults.py, run under the instrument."""
    root = tmp_path_factory.mktemp("faults")
    folders = []
    for number, (text, *_) in enumerate(faults.CASES.values()):
        folder = root / str(number)
        folder.mkdir()
        (folder / "train.py").write_text(text)
        folders.append(str(folder))
    command = [sys.executable, str(Path(__file__).parent / "forked.py"), json.dumps({"gradients": {}}), *folders]
    subprocess.run(command, check=True)
    return root


@pytest.mark.parametrize("name", faults.CASES)
def test_the_first_bad_operation_is_named(faulty: Path, name: str) -> None:
    text, stage, label, path = faults.CASES[name]
    folder = faulty / str(list(faults.CASES).index(name))
    assert (folder / "code").read_text() == "1", (folder / "output").read_text()
    seen, report = report_on_run(folder)
    (broke,) = (each.fact for each in seen.all(NumberBroke))
    assert (broke.iteration, broke.stage, broke.label) == (4, stage, label)
    if path is not None:
        assert broke.path == path
    here = [number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith("# HERE")]
    if here:
        assert broke.place == f"{folder / 'train.py'}:{here[0]}"
    assert broke.same
    assert not broke.problem
    found = [verdict.code for verdict in report.verdicts if verdict.status in (FOUND, CRASHED)]
    assert "CD801" in found
    assert "CD420" not in found


#: F.forget keeps a bound method of the program's own, which no script can hold.
NOT_WRITTEN = {"inside F.forget"}
OPERATIONS = [name for name, (_, stage, *_) in faults.CASES.items() if stage in ("forward", "backward")]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_written_script_fails_in_the_same_place(faulty: Path, name: str) -> None:
    """The stand-alone script needs nothing of ours, and gives the same number of bad elements."""
    folder = faulty / str(list(faults.CASES).index(name))
    if name in NOT_WRITTEN:
        (broke,) = (each.fact for each in snapshot_of(read_run(folder)).all(NumberBroke))
        assert broke.repro.startswith("not written: ValueError")
        assert not (folder / "repro" / "repro.py").exists()
        return
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "repro" / "repro.py")], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    (broke,) = (each.fact for each in snapshot_of(read_run(folder)).all(NumberBroke))
    bad = sum(each.nan + each.infinite for each in broke.results)
    if broke.stage == "forward":
        assert sum(int(line.split(", ")[-1].split()[0]) for line in done.stdout.splitlines()) == bad


def test_never_stopping_lets_the_program_run_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(faults.CASES["log of negative"][0] + "print('done')\n")
    command = [sys.executable, str(Path(__file__).parent / "forked.py"), '{"gradients": {"stop_on": "never"}}']
    subprocess.run([*command, str(tmp_path)], check=True)
    assert (tmp_path / "code").read_text() == "0"
    assert "done" in (tmp_path / "output").read_text()
    run = read_run(tmp_path)
    assert run.ranks[0].capture.last("end")["iterations"] == 6


NOT_AGAIN = """
import numpy as np, chainer, chainer.functions as F, chainer.links as L
rng = np.random.RandomState(0)
class Odd(chainer.FunctionNode):
    calls = 0
    def forward(self, inputs):
        Odd.calls += 1
        return (inputs[0] * np.float32(np.inf if Odd.calls == 4 else 1),)
    def backward(self, indexes, gy):
        return gy
model = L.Linear(4, 2)
optimizer = chainer.optimizers.SGD().setup(model)
for n in range(6):
    model.cleargrads()
    F.sum(Odd().apply((model(rng.rand(3, 4).astype("f")),))[0] ** 2).backward()
    optimizer.update()
"""


def test_a_fault_that_does_not_come_again_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NOT_AGAIN)
    subprocess.run(
        [sys.executable, str(Path(__file__).parent / "forked.py"), '{"gradients": {}}', str(tmp_path)], check=True
    )
    seen, report = report_on_run(tmp_path)
    (broke,) = (each.fact for each in seen.all(NumberBroke))
    assert (broke.iteration, broke.in_loss, broke.stage, broke.same) == (4, True, "", False)
    (verdict,) = (each for each in report.verdicts if each.code == "CD801")
    assert any("not deterministic" in evidence.seen for evidence in verdict.findings[0].evidence)


#: Which findings each script of fixtures/scripts has to have; no others. Those with ranks run on two.
WANTED = {
    "sick_clipping_under_scale": {"CD813"},
    "sick_dead_layer": {"CD804"},
    "sick_eps": {"CD801", "CD815"},
    "sick_fp32_update": {"CD814"},
    "sick_half_underflow": {"CD810"},
    "sick_learning_rate": {"CD802", "CD805"},
    "sick_loss_scale_attribute": {"CD811"},
    "sick_not_cleared": {"CD817"},
    "sick_scale_collapses": {"CD816"},
    "sick_vanishing": {"CD803"},
    "healthy_accumulation": set(),
    "healthy_clipping": set(),
    "healthy_cnn": set(),
    "healthy_gan": set(),
    "healthy_half": set(),
    "healthy_mlp": set(),
}
ON_RANKS = {
    "sick_ranks_alone": {"CD822"},
    "sick_ranks_drift": {"CD820"},
    "sick_ranks_mask": {"CD823"},
    "sick_ranks_outlier": {"CD826"},
    "sick_ranks_sum": {"CD820", "CD821", "CD828"},
    "healthy_naive_ranks": set(),
}


def findings(tmp_path: Path, name: str, *options: str, arguments: tuple = ()) -> set:
    command = [sys.executable, "-m", "chainerdoctor", "check-gradients", *options, "--out", str(tmp_path / "run")]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [*command, "--format", "json", "-o", str(report), str(SCRIPTS / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert report.exists(), done.stdout + done.stderr
    verdicts = json.loads(report.read_text())["verdicts"]
    return {each["code"] for each in verdicts if each["status"] in (FOUND, CRASHED)}


@pytest.mark.parametrize("name", WANTED)
def test_sick_scripts_are_found_and_healthy_ones_are_not(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, name) == WANTED[name]


@pytest.mark.parametrize("name", ON_RANKS)
def test_ranks_are_compared(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, name, "-n", "2", "--across-ranks") == ON_RANKS[name]


@pytest.mark.parametrize("ranks", ["2", "4"])
@pytest.mark.parametrize("parts", [(), ("--same",)], ids=["unlike parts", "like parts"])
def test_parts_of_one_model_are_not_taken_for_replicas(tmp_path: Path, ranks: str, parts: tuple) -> None:
    assert findings(tmp_path, "healthy_model_parallel", "-n", ranks, "--across-ranks", arguments=parts) == set()


@pytest.mark.parametrize("size", [1, 100, 4097, 1_000_000, 25_000_000])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_norms_of_float32_agree_with_float64(size: int, spread: float) -> None:
    from chainerdoctor.instrument.gradient_sums import squares

    rng = np.random.RandomState(7)
    array = (rng.standard_normal(size) * np.exp(spread * rng.standard_normal(size))).astype(np.float32)
    wanted = math.sqrt(float(np.sum(np.square(array.astype(np.float64)))))
    assert math.sqrt(squares([array])[0]) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float32),
        np.zeros(5000, np.float32),
        np.arange(24, dtype=np.float32).reshape(4, 6).T,
        np.arange(20000, dtype=np.float32)[::2],
        np.asfortranarray(np.random.RandomState(0).rand(300, 70).astype(np.float32)),
        np.full(9000, 3e25, np.float32),
        np.full(9000, 3e-30, np.float32),
        np.full(70000, 0.1, np.float16),
        np.full(9000, 60000, np.float16),
        np.random.RandomState(0).rand(9000),
        np.float32(3).reshape(()),
    ],
    ids=str,
)
def test_norms_of_odd_arrays(array: "np.ndarray") -> None:
    from chainerdoctor.instrument.gradient_sums import squares

    wanted = math.sqrt(float(np.sum(np.square(array.astype(np.float64)))))
    assert math.sqrt(squares([array])[0]) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("at", [0, 4999, 12345, 19999])
def test_one_bad_element_is_never_missed(bad: float, dtype: type, at: int) -> None:
    from chainerdoctor.instrument.gradient_sums import nonfinite, squares

    array = np.ones(20000, dtype)
    array[at] = bad
    assert not math.isfinite(squares([array])[0])
    assert nonfinite(array) == 1


def test_recorded_norms_are_those_of_an_independent_hook(tmp_path: Path) -> None:
    """A hook of the program's own prints the float64 norm of each iteration; the capture has to say the same."""
    script = (SCRIPTS / "healthy_clipping.py").read_text().replace("range(200)", "range(20)")
    script = script.replace(
        "optimizer.add_hook(",
        """
def tell(optimizer):
    print(sum(float((p.grad.astype(np.float64) ** 2).sum()) for p in model.params()) ** 0.5)

tell.timing = "pre"
tell.call_for_each_param = False
optimizer.add_hook(tell, "tell")
optimizer.add_hook(""",
        1,
    )
    (tmp_path / "train.py").write_text(script)
    subprocess.run(
        [sys.executable, str(Path(__file__).parent / "forked.py"), '{"gradients": {}}', str(tmp_path)], check=True
    )
    printed = [float(line) for line in (tmp_path / "output").read_text().split()]
    seen, _ = report_on_run(tmp_path)
    (series,) = (each.fact for each in seen.all(GradientSeries))
    assert series.norm == pytest.approx(printed, rel=1e-6)
    assert len(printed) == 20


def test_loss_scale_is_divided_out(tmp_path: Path) -> None:
    script = (SCRIPTS / "sick_clipping_under_scale.py").read_text()
    norms = []
    for scale in (1.0, 1024.0):
        folder = tmp_path / str(scale)
        folder.mkdir()
        (folder / "train.py").write_text(script.replace("1024.0", str(scale)).replace("range(40)", "range(1)"))
        command = [sys.executable, str(Path(__file__).parent / "forked.py"), '{"gradients": {}}', str(folder)]
        subprocess.run(command, check=True)
        seen, _ = report_on_run(folder)
        norms.append(seen.all(GradientSeries)[0].fact.norm[0])
    assert norms[1] == pytest.approx(norms[0], rel=1e-5)


def test_a_rank_that_stops_says_so_and_not_that_it_failed(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(faults.CASES["log of negative"][0])
    command = [sys.executable, "-m", "chainerdoctor", "check-gradients", "--out", str(tmp_path / "run"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 1
    assert "CD801 error  number-not-finite" in done.stdout
    assert "CD420" not in done.stdout
    assert "Traceback" not in done.stderr
