"""A made-up log of a large training run, shaped like NCCL 2.21's: start-up of several communicators, then training."""

from __future__ import annotations

import random
from typing import BinaryIO, Iterator, List

HOSTS = 64
GPUS = 8
CHANNELS = 16


def start_up(run: int, rng: random.Random) -> Iterator[str]:
    """Everything that 512 ranks print while one communicator is set up, interleaved as ranks are."""
    ranks = HOSTS * GPUS
    comm_id = f"0x{rng.getrandbits(64):016x}"
    per_rank: List[List[str]] = []
    for rank in range(ranks):
        host, gpu = divmod(rank, GPUS)
        head = f"gpu{host:03d}:{20000 + gpu}:{30000 + gpu + run * 10} [{gpu}] NCCL INFO "
        bus = f"{0x1A + gpu * 0x12:x}000"
        pointer = f"0x{0x55D000000000 + rank * 4096 + run:x}"
        where = f"comm {pointer} rank {rank} nranks {ranks} cudaDev {gpu} nvmlDev {gpu} busId {bus} commId {comm_id}"
        lines = []
        if run == 0:
            lines += [
                f"Bootstrap : Using ib0:10.1.{host}.2<0>",
                "NET/Plugin: No plugin found (libnccl-net.so)",
                f"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB "
                f"ib0:10.1.{host}.2<0>",
                "Using network IB",
            ]
        lines.append(f"ncclCommInitRank {where} - Init START")
        lines.append(f"Setting affinity for GPU {gpu} to ffff,ffff0000,00000000")
        trees = " ".join(f"[{c}] {(rank + 1) % ranks}/-1/-1->{rank}->{(rank - 1) % ranks}" for c in range(CHANNELS))
        lines.append(f"Trees {trees}")
        if rank == 0:
            ring = " ".join(f"{r:3d}" for r in range(ranks))
            lines += [f"Channel {c:02d}/{CHANNELS} : {ring}" for c in range(CHANNELS)]
        for c in range(CHANNELS):
            for other in ((rank + 1) % ranks, (rank - 1) % ranks):
                to = f"{rank}[{gpu}] -> {other}[{other % GPUS}]"
                if other // GPUS == host:
                    lines.append(f"Channel {c:02d}/0 : {to} via P2P/CUMEM/read")
                else:
                    lines.append(f"Channel {c:02d}/0 : {to} [send] via NET/IB/{c % 4}/GDRDMA")
                    back = f"{other}[{other % GPUS}] -> {rank}[{gpu}]"
                    lines.append(f"Channel {c:02d}/0 : {back} [receive] via NET/IB/{c % 4}/GDRDMA")
        lines += [
            "Connected all rings",
            "Connected all trees",
            "threadThresholds 8/8/64 | 4096/8/64 | 512 | 512",
            f"{CHANNELS} coll channels, 0 collnet channels, 0 nvls channels, 32 p2p channels, 2 p2p channels per peer",
            f"ncclCommInitRank {where} - Init COMPLETE",
        ]
        per_rank.append([head + line for line in lines])
    for at in range(max(len(lines) for lines in per_rank)):
        for lines in per_rank:
            if at < len(lines):
                yield lines[at]


def training(first: int, iterations: int, rng: random.Random) -> Iterator[str]:
    """What the program itself prints: a table of losses, a progress bar, data loader chatter."""
    for iteration in range(first, first + iterations):
        losses = f"{rng.random() * 4:<11.6g} {rng.random() * 4:<11.6g}"
        yield f"{iteration // 500:<11d} {iteration:<11d} {losses} {iteration * 0.71:<.5f}"
        yield f"     total [{'#' * (iteration % 50)}{'.' * (50 - iteration % 50)}] {iteration % 100:5.2f}%"
        if iteration % 7 == 0:
            yield f"[loader {iteration % 8}] shard {rng.randrange(9999):05d}.tar ready after {rng.random():.3f} s"


def write(file: BinaryIO, size: int, seed: int = 1) -> int:
    """Write at least ``size`` bytes, about two thirds NCCL; returns the number of bytes."""
    rng = random.Random(seed)
    written = run = iteration = 0
    while written < size:
        for lines in (start_up(run, rng), training(iteration, 9_000, rng)):
            block = "\n".join(lines).encode() + b"\n"
            file.write(block)
            written += len(block)
            if written >= size:
                break
        run += 1
        iteration += 9_000
    return written
