"""NCCL's messages in the forms of its versions. Formats are those of NVIDIA/nccl at the tags named."""

import pytest

from chainerdoctor.facts.log import LogEvent, NcclCommunicator, NcclLog, NcclProcess
from chainerdoctor.logs import nccl
from chainerdoctor.logs.gather import read_logs
from chainerdoctor.logs.nccl import MessageParser, collective
from chainerdoctor.logs.nccl_warnings import warned

EDGES = [
    (b"Ring 00 : 0[0] -> 1[1] via P2P/IPC", (0, 1, "P2P/IPC", None, False, False)),  # 2.3
    (b"Ring 01 : 3 -> 4 via NET/IB/0/GDRDMA", (3, 4, "NET/IB", 0, True, False)),  # 2.3
    (b"Ring 00 : 1[1] -> 2[2] via direct shared memory", (1, 2, "SHM", None, False, False)),  # 2.5
    (b"Channel 00 : 7[88000] -> 8[8a000] [receive] via NET/Socket/1", (7, 8, "NET/Socket", 1, False, True)),  # 2.7
    (b"Channel 11/0 : 0[27000] -> 7[ca000] via P2P/IPC/read", (0, 7, "P2P/IPC", None, False, False)),  # 2.12
    (b"Channel 03 : 0[1b000] -> 1[3b000] via SHM/direct/direct", (0, 1, "SHM", None, False, False)),  # 2.14
    (b"Channel 00/0 : 5[5] -> 13[5] [send] via NET/IB/3(4)/GDRDMA", (5, 13, "NET/IB", 3, True, False)),  # 2.18, PXN
    (
        b"Channel 00/1 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/2/GDRDMA(PCI)/Shared",
        (0, 8, "NET/AWS Libfabric", 2, True, False),
    ),
    (b"Channel 02/0 : 0[0] -> 1[1] via P2P/CUMEM/read\r", (0, 1, "P2P/CUMEM", None, False, False)),  # 2.19
    (b"Channel 02 : 0[0] -> 2[2] via P2P/indirect/1[1]", (0, 2, "P2P/indirect", None, False, False)),  # 2.10
    (b"Channel 00 : 0[1] -> 1[2] via P2P/direct pointer", (0, 1, "P2P/direct", None, False, False)),  # 2.7
]


@pytest.mark.parametrize(("text", "wanted"), EDGES, ids=[str(e[0])[:50] for e in EDGES])
def test_edges(text, wanted):
    kind, payload = MessageParser().parse(text)
    assert kind == nccl.EDGE
    edge = payload[0]
    assert (edge.source, edge.target, edge.transport, edge.device, edge.gdr, edge.receives) == wanted


def test_equal_edges_are_one_object_whatever_the_channel():
    parser = MessageParser()
    one = parser.parse(b"Channel 00/0 : 0[0] -> 1[1] via P2P/IPC")[1]
    two = parser.parse(b"Channel 01/0 : 0[0] -> 1[1] via P2P/IPC")[1]
    assert one[0] is two[0]
    assert one[1] != two[1]


COMMS = [
    (b"comm 0x7f66 rank 1 nranks 2", ("start", "0x7f66", 1, 2, None, "", "")),  # 2.3
    (b"comm 0x7f66 rank 1 nranks 2 - COMPLETE", ("complete", "0x7f66", 1, 2, None, "", "")),  # 2.3
    (
        b"comm 0x55 rank 3 nranks 4 cudaDev 3 busId 8a000 - Init COMPLETE",
        ("complete", "0x55", 3, 4, 3, "8a000", ""),
    ),  # 2.7
    (
        b"ncclCommInitRank comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 4 busId 1901000 commId 0x470f96b16d11fb71 - Init START",
        ("start", "0x55", 0, 2, 0, "1901000", "0x470f96b16d11fb71"),
    ),  # 2.26
    (
        b"ncclCommSplit comm 0x55 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b parent 0x66 splitCount 1 color 0 key 0 - Init COMPLETE",
        ("complete", "0x55", 0, 2, 0, "1b", ""),
    ),
]


@pytest.mark.parametrize(("text", "wanted"), COMMS, ids=[str(c[0])[:40] for c in COMMS])
def test_communicators(text, wanted):
    assert MessageParser().parse(text) == (nccl.COMM, wanted)


DULL = [
    b"comm 0x55 rank 3 nranks 4 cudaDev 3 busId 8a000 - Destroy COMPLETE",
    b"comm 0x55 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0",
    b"Connected all rings",
    b"threadThresholds 8/8/64 | 32/8/64 | 8/8/64",
    b"init.cc:903 -> 5",
    b"NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
    b"",
]


@pytest.mark.parametrize("text", DULL)
def test_dull_messages(text):
    assert MessageParser().parse(text)[0] == nccl.DULL


OTHERS = [
    (b"NCCL version 2.26.2+cuda12.8", nccl.VERSION, "2.26.2+cuda12.8"),
    (b"Bootstrap : Using [0]lo:127.0.0.1<0> [1]ib0:fe80::1%ib0<0>", nccl.BOOTSTRAP, (("lo", "127.0.0.1"), ("ib0", "fe80::1%ib0"))),
    (b"Bootstrap: Using eth0:10.0.0.2<0>", nccl.BOOTSTRAP, (("eth0", "10.0.0.2"),)),
    (b"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB ib0:10.0.0.2<0>", nccl.IB_DEVICES, ("mlx5_0:1/IB", "mlx5_3:1/RoCE")),
    (b"NET/Socket : Using [0]eth0:10.0.0.2<0>", nccl.SOCKET_DEVICES, (("eth0", "10.0.0.2"),)),
    (b"Using network AWS Libfabric", nccl.NETWORK, "AWS Libfabric"),
    (b"Using internal Network IB", nccl.NETWORK, "IB"),
    (b"Assigned NET plugin IB to comm", nccl.NETWORK, "IB"),
    (b"NCCL_P2P_LEVEL set by environment to PIX", nccl.SETTING, ("NCCL_P2P_LEVEL", "PIX")),
    (b"NCCL_P2P_DISABLE set by environment to 1.", nccl.SETTING, ("NCCL_P2P_DISABLE", "1")),
    (b"NVLS multicast support is not available on dev 0", nccl.NVLS, False),
    (b"Channel 01/02 :    0   1   3   2", nccl.RING, (1, "0 1 3 2")),
    (
        b"8 coll channels, 0 collnet channels, 4 nvls channels, 8 p2p channels, 8 p2p channels per peer",
        nccl.CHANNELS,
        {"coll": 8, "collnet": 0, "nvls": 4, "p2p": 8},
    ),
    (b"Failed to open libibverbs.so[.1]", nccl.EVENT, "nccl.no_ibverbs"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "wanted"), OTHERS, ids=[str(o[0])[:40] for o in OTHERS])
def test_other_messages(text, kind, wanted):
    assert MessageParser().parse(text) == (kind, wanted)


def test_a_collective_call_is_taken_apart_and_a_cut_one_is_not():
    line = b"AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x6"
    message = collective(line)
    assert message is not None
    assert [message[1][i] for i in (0, 2, 8, 16)] == [b"AllReduce:", b"1f", b"1024", b"0x55"]
    assert collective(line[:70]) is None


WARNINGS = [
    ("Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 1000", "nccl.duplicate_gpu"),
    ("NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129", "nccl.ib_completion"),  # 2.3
    (
        "NET/IB : Got completion from peer 10.0.0.2<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
        "nccl.ib_completion",
    ),
    (
        "NET/IB: Got completion from peer p with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 hca mlx5_0",
        "nccl.ib_completion",
    ),  # 2.30
    ("Call to posix_fallocate failed : No space left on device", "nccl.shm_full"),
    ("Call to ibv_reg_mr failed with error Cannot allocate memory", "nccl.memlock"),
    ("Call to connect returned Connection refused", "nccl.connect_failed"),
    ("socketStartConnect: Connect to 10.0.0.2<4> failed : Network is unreachable", "nccl.connect_failed"),
    ("Net : Connection closed by remote peer gpu-b<41000>", "nccl.peer_closed"),
    ("socketFinalizeAccept: wrong type 4 != 3", "nccl.outsider"),
    ("Mismatched NCCL version detected : rank 1 version 21805 rank 0 version 22105", "nccl.version_mismatch"),
    ("Cuda failure 217 'peer access is not supported between these two devices'", "nccl.ipc_failed"),
    ("Cuda failure 'out of memory'", "nccl.out_of_memory"),
    ("Cuda failure 700 'an illegal memory access was encountered'", "nccl.cuda_failure"),
    ("something never seen", "nccl.warning"),
]


@pytest.mark.parametrize(("text", "event"), WARNINGS, ids=[w[0][:40] for w in WARNINGS])
def test_warnings(text, event):
    assert warned(text)[0] == event


def test_status_and_vendor_error_are_read_from_all_forms_of_a_completion_error():
    details = [warned(text)[1] for text, event in WARNINGS if event == "nccl.ib_completion"]
    assert [(d["status"], d["vendor"]) for d in details] == [("12", "129")] * 3


def read(tmp_path, text):
    path = tmp_path / "nccl.log"
    path.write_text(text)
    return read_logs([str(path)], utc_offset_s=0, now_s=0.0)


def test_ranks_hosts_and_edges_of_a_communicator(tmp_path):
    head = ["gpu-a:10:20 [0]", "gpu-b:30:40 [1]"]
    lines = []
    for rank, who in enumerate(head):
        where = f"comm 0x{rank + 1} rank {rank} nranks 2 cudaDev {rank} nvmlDev 0 busId 1b00{rank} commId 0xabc"
        lines.append(f"{who} NCCL INFO ncclCommInitRank {where} - Init START")
        other = 1 - rank
        for channel in (0, 1):
            lines.append(
                f"{who} NCCL INFO Channel 0{channel}/0 : {rank}[{rank}] -> {other}[{other}] [send] via NET/IB/0/GDRDMA"
            )
            lines.append(
                f"{who} NCCL INFO Channel 0{channel}/0 : {other}[{other}] -> {rank}[{rank}] [receive] via NET/IB/0/GDRDMA"
            )
        lines.append(f"{who} NCCL INFO ncclCommInitRank {where} - Init COMPLETE")
    snapshot = read(tmp_path, "\n".join(lines))
    (communicator,) = [s.fact for s in snapshot.all(NcclCommunicator)]
    assert communicator.identified
    assert communicator.finished == (0, 1)
    assert communicator.unfinished == ()
    assert communicator.where == {"0": "gpu-a/0/1b000", "1": "gpu-b/1/1b001"}
    # Both ends print an edge; it counts once.
    assert [(e.source, e.target, e.transport, e.channels, e.gdr) for e in communicator.edges] == [
        (0, 1, "NET/IB", 2, True),
        (1, 0, "NET/IB", 2, True),
    ]


def test_two_communicators_that_an_old_version_does_not_name_are_called_mixed(tmp_path):
    lines = []
    for host in ("gpu-a", "gpu-b"):
        for rank in (0, 1):
            who = f"{host}:{10 + rank}:{20 + rank} [{rank}]"
            lines.append(
                f"{who} NCCL INFO comm 0x5{rank} rank {rank} nranks 2 cudaDev {rank} busId 1{rank} - Init COMPLETE"
            )
    snapshot = read(tmp_path, "\n".join(lines))
    (communicator,) = [s.fact for s in snapshot.all(NcclCommunicator)]
    assert not communicator.identified
    assert communicator.mixed
    assert communicator.instances == 2


def test_what_a_process_chose_and_where_it_says_so(tmp_path):
    text = (
        "gpu-a:10:10 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>\n"
        "gpu-a:10:10 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n"
        "gpu-a:10:10 [0] NCCL INFO Using network IB\n"
        "NCCL version 2.18.5+cuda12.2\n"
    )
    snapshot = read(tmp_path, text)
    (process,) = [s.fact for s in snapshot.all(NcclProcess)]
    assert (process.host, process.pid, process.device, process.network) == ("gpu-a", 10, 0, "IB")
    assert process.settings == {"NCCL_IB_HCA": "mlx5_0"}
    assert process.lines == {"bootstrap": 1, "settings.NCCL_IB_HCA": 2, "network": 3}
    assert snapshot.all(NcclLog)[0].fact.versions == {"2.18.5+cuda12.2": 4}


def test_times_and_launcher_ranks_of_warnings(tmp_path):
    text = "\n[1,7]<stdout>:[2025-03-18 21:25:51] gpu-a:10:10 [0] init.cc:1 NCCL WARN something new\n"
    (event,) = [s.fact for s in read(tmp_path, text).all(LogEvent)]
    assert (event.event, event.line, event.hosts, event.ranks, event.at_s) == (
        "nccl.warning",
        2,
        ("gpu-a",),
        (7,),
        1742333151.0,
    )
