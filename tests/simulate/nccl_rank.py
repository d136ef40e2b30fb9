"""One rank of a test: NCCL through ctypes, standard library only. Prints one JSON object.

Usage: nccl_rank.py RANK SIZE ID_FILE OPERATION...   An operation is NAME[:TYPE[:COUNT]].
"""

import array
import ctypes
import json
import os
import sys
import time

TYPES = {"int8": ("b", 0), "int32": ("i", 2), "int64": ("q", 4), "float32": ("f", 7), "float64": ("d", 8)}
SUM, PROD, MAX, MIN, AVG = range(5)


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def shared_id(nccl, rank, path):
    unique = UniqueId()
    if rank == 0:
        code = nccl.ncclGetUniqueId(ctypes.byref(unique))
        if code:
            return unique, code
        with open(path + ".part", "wb") as file:
            file.write(bytes(unique))
        os.rename(path + ".part", path)
        return unique, 0
    while not os.path.exists(path):
        time.sleep(0.005)
    with open(path, "rb") as file:
        ctypes.memmove(ctypes.byref(unique), file.read(), 128)
    return unique, 0


def numbers(kind, count, rank):
    return array.array(kind, [(i % 5) + rank for i in range(count)])


def main():
    rank, size, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    nccl = ctypes.CDLL("libnccl.so.2")
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    unique, code = shared_id(nccl, rank, path)
    comm = ctypes.c_void_p()
    code = code or nccl.ncclCommInitRank(ctypes.byref(comm), size, unique, rank)
    out = {"init": code, "codes": [], "results": [], "took_s": []}
    for operation in sys.argv[4:] if not code else []:
        name, kind, count = (
            (operation.split(":") + ["float32", "12"])[:3] if ":" in operation else (operation, "float32", "12")
        )
        letter, number = TYPES[kind]
        count = int(count)
        source, target = numbers(letter, count * (size if name == "reduce_scatter" else 1), rank), None
        target = array.array(letter, [0] * count * (size if name == "all_gather" else 1))
        a, b = (ctypes.c_void_p(x.buffer_info()[0]) for x in (source, target))
        n, null, peer, previous = ctypes.c_size_t(count), ctypes.c_void_p(), (rank + 1) % size, (rank - 1) % size
        start = time.monotonic()
        if name in ("sum", "prod", "max", "min", "avg"):
            op = {"sum": SUM, "prod": PROD, "max": MAX, "min": MIN, "avg": AVG}[name]
            code = nccl.ncclAllReduce(a, b, n, number, op, comm, null)
        elif name == "reduce":
            code = nccl.ncclReduce(a, b, n, number, SUM, size - 1, comm, null)
        elif name == "broadcast":
            code = nccl.ncclBroadcast(a, b, n, number, size - 1, comm, null)
        elif name == "reduce_scatter":
            code = nccl.ncclReduceScatter(a, b, n, number, SUM, comm, null)
        elif name == "all_gather":
            code = nccl.ncclAllGather(a, b, n, number, comm, null)
        elif name == "ring":
            nccl.ncclGroupStart()
            nccl.ncclSend(a, n, number, peer, comm, null)
            nccl.ncclRecv(b, n, number, previous, comm, null)
            code = nccl.ncclGroupEnd()
        else:
            raise SystemExit(f"no operation {name}")
        out["took_s"].append(time.monotonic() - start)
        out["codes"].append(code)
        out["results"].append(list(target[:24]) + list(target[-3:]))
    if comm:
        error = ctypes.c_int()
        nccl.ncclCommGetAsyncError(comm, ctypes.byref(error))
        out["async"] = error.value
        nccl.ncclCommDestroy(comm)
    version = ctypes.c_int()
    nccl.ncclGetVersion(ctypes.byref(version))
    out["version"] = version.value
    print(json.dumps(out))


main()
