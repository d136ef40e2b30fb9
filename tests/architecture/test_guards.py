"""The invariants of the design that a machine can check."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "chainerdoctor"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: What may be imported in the user's interpreter on every rank.
RANK_SIDE = ("facts", "codec.py", "snapshot.py", "host.py", "probes", "adapters", "instrument")
RANK_SIDE_LAUNCH = ("agent.py", "frames.py", "identity.py", "shelter.py", "witness.py")
#: Third-party modules, and the only place where each may be imported.
ADAPTERS = {
    "pynvml": "adapters",
    "cupy": "adapters",
    "mpi4py": "adapters",
    "chainer": "adapters",
    "chainermn": "adapters",
}


def imported(path: Path, top_level_only: bool = False) -> set:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else ast.walk(tree)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def test_import_contracts() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rank_side_needs_the_standard_library_only() -> None:
    """Import the whole rank side with nothing but the standard library on the path."""
    code = (
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]; sys.path.insert(0, sys.argv[1])\n"
        "import chainerdoctor.launch.agent\n"
        "from chainerdoctor.probes import all_probes\n"
        "from chainerdoctor.facts import fact_kinds\n"
        "assert all_probes() and fact_kinds()\n"
        "bad = {'click', 'rich', 'jinja2', 'packaging', 'numpy', 'chainer', 'pynvml', 'psutil', 'mpi4py'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code, str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_third_party_libraries_are_imported_by_adapters_only(path: Path) -> None:
    folder = path.relative_to(PACKAGE).parts[0]
    for name in imported(path):
        top = name.split(".")[0]
        if top in ADAPTERS and folder not in (ADAPTERS[top], "instrument", "workloads", "simulate", "compat"):
            raise AssertionError(f"{path} imports {name}; only adapters may")
        if top in ADAPTERS and folder == "adapters":
            assert name not in imported(path, top_level_only=True), f"{path} imports {name} when it is itself imported"


@pytest.mark.parametrize("path", [*MODULES, *sorted(PACKAGE.rglob("*.c"))], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_stay_small(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 400, f"{lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_stub_and_no_vague_name(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
    assert "NotImplementedError" not in text
    assert path.stem not in {"utils", "util", "common", "helpers", "manager", "base", "misc"}


@pytest.mark.parametrize("path", sorted((PACKAGE / "rules").rglob("cd*.py")), ids=lambda p: p.stem)
def test_rules_have_no_way_to_the_outside(path: Path) -> None:
    outside = {"os", "sys", "time", "random", "datetime", "subprocess", "socket", "pathlib", "io", "secrets", "uuid"}
    assert not {name.split(".")[0] for name in imported(path)} & outside
    assert not re.search(r"\bopen\(|\bprint\(|\beval\(|\bexec\(", path.read_text(encoding="utf-8"))


def test_cli_files_are_thin() -> None:
    for path in (PACKAGE / "cli").glob("*.py"):
        heavy = {"rich", "jinja2", "chainerdoctor.rules", "chainerdoctor.judging", "chainerdoctor.launch.collect"}
        assert not imported(path, top_level_only=True) & heavy, f"{path} would make --help slow"


def test_nothing_names_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    paths = listed.stdout.split() or [str(p.relative_to(ROOT)) for p in MODULES]
    words = re.compile("/" + "work/|/root/" + r"\.pyenv|/tmp/" + "feas")
    for name in paths:
        path = ROOT / name
        if path.is_file() and path.suffix in (".py", ".md", ".toml", ".json", ".golden", ".txt", ".sh", ""):
            assert not words.search(path.read_text(encoding="utf-8", errors="replace")), name
