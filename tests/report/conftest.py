"""Published schemas, taken from packages of the index that carry them (they are not ours to copy)."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

#: Sdists and the file in them: OASIS' schema in Microsoft's package, the Jenkins xunit plugin's in pytest's tests.
SDISTS = {
    "sarif": ("sarif-om==1.0.4", "sarif-2.1.0-rtm.4.json"),
    "junit": ("pytest==8.3.5", "testing/example_scripts/junit-10.xsd"),
}


@pytest.fixture(scope="session")
def published_schema():
    """The text of a schema by name. Fetched once by pip and kept beside the environment."""

    def text(name: str) -> str:
        requirement, member = SDISTS[name]
        kept = Path(sys.prefix) / "schemas" / requirement
        if not kept.is_dir():
            fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", fresh]
            done = subprocess.run([*command, requirement], capture_output=True, text=True)
            assert done.returncode == 0, f"cannot fetch {requirement}: {done.stderr}"
            os.replace(fresh, kept)
        (archive,) = kept.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            (found,) = [m for m in tar.getmembers() if m.name.endswith(member)]
            file = tar.extractfile(found)
            assert file is not None
            return file.read().decode("utf-8")

    return text
