"""What mpirun, mpiexec, prterun, Hydra, srun and the MPI libraries print when something is wrong.

Wordings: Open MPI 4 and 5 (help-*.txt of ompi, orte and prrte), MPICH and Hydra, MVAPICH2, Intel MPI, Slurm, UCX.
"""

from __future__ import annotations

import re
from typing import Tuple

from chainerdoctor.logs.wordings import Wording, wording

WORDINGS: Tuple[Wording, ...] = (
    wording(
        "mpi.no_slots", "slots", r"There are not enough slots available in the system to satisfy the (?P<wanted>\d+)"
    ),
    wording("mpi.no_slots", "slots", r"All nodes which are allocated for this job are already filled"),
    wording("mpi.no_slots", "more process", r"more process\w* (?:than|requested).{0,60}(?:available|slots)"),
    wording(
        "mpi.no_slots", "more processors requested", r"srun: error: .{0,60}[Mm]ore processors requested than permitted"
    ),
    wording("mpi.root", "run as root", r"(?P<tool>\w+) has detected an attempt to run as root"),
    wording("mpi.no_executable", "executable", r"(?P<tool>\w+) was unable to find the specified executable file"),
    wording("mpi.no_executable", "could not find an executable", r"could not find an executable"),
    wording(
        "mpi.no_executable",
        "no such file",
        r"(?:HYDU_create_process|execve?\(?\)?|\[proxy:\S{1,60}).{0,120}\(?No such file or directory\)?",
    ),
    wording("mpi.no_executable", "execve", r"slurmstepd: error: execve\(\): (?P<program>\S{1,200}): No such file"),
    wording("mpi.fork", "fork()", r"\"?fork\(\)\"? system call to create a child process"),
    wording(
        "mpi.cma_blocked",
        "cma",
        r"CMA is not available|CMA support (?:is not available|was requested)|(?:single.copy mechanism"
        r"|CMA).{0,80}(?:not available|not permitted|ptrace)",
    ),
    wording("mpi.cma_blocked", "process_vm_readv", r"process_vm_\w+ ?:? ?.{0,20}(?:Operation not permitted|failed)"),
    wording("mpi.cma_blocked", "expected", r"Read -\d+, expected (?P<wanted>\d+), errno = (?P<errno>\d+)"),
    wording("mpi.ucx_threads", "mpi_thread_multiple", r"UCP worker does not support MPI_THREAD_MULTIPLE"),
    wording(
        "mpi.daemon_lost",
        "daemon",
        r"(?:ORTE|PRTE|PRRTE) (?:was unable to reliably start|daemon has unexpectedly failed"
        r"|has lost communication|does not know how to route)",
    ),
    wording(
        "mpi.daemon_lost",
        "daemon",
        r"A daemon (?:\(pid \S{1,20}\) )?(?:died unexpectedly|on node .{1,80} failed to start)",
    ),
    wording("mpi.daemon_lost", "daemon", r"An (?:ORTE|PRTE) daemon has unexpectedly failed"),
    wording("mpi.daemon_lost", "process manager error", r"process manager error waiting for completion"),
    wording("mpi.daemon_lost", "host key verification", r"Host key verification failed"),
    wording(
        "mpi.daemon_lost", "permission denied (", r"(?:^|: )Permission denied \((?:publickey|password|keyboard|gssapi)"
    ),
    wording("mpi.daemon_lost", "connect to", r"ssh: connect to host (?P<peer>\S{1,100}) port \d+: (?P<why>.{1,60})"),
    wording("mpi.daemon_lost", "resolve hostname", r"ssh: Could not resolve hostname (?P<peer>[^\s:]{1,100})"),
    wording(
        "mpi.daemon_lost",
        "unable to connect from",
        r"unable to connect from \"?(?P<host>[^\"\s]{1,100})\"? to \"?(?P<peer>[^\"\s]{1,100})",
    ),
    wording("mpi.daemon_lost", "hydu_sock_connect", r"HYDU_sock_connect"),
    wording(
        "mpi.daemon_lost",
        "error waiting for event",
        r"(?:control_cb|HYD\w{1,40}|HYDT_\w{1,40}).{0,80}error waiting for event",
    ),
    wording(
        "mpi.tcp_unreachable",
        "connect(",
        r"btl_tcp_endpoint\S{0,40}.{0,80}connect\(\) to (?P<peer>\S{1,60}) failed: (?P<why>.{1,60})",
    ),
    wording("mpi.tcp_unreachable", "tcp connection", r"Open MPI accepted a TCP connection from what appears to be a"),
    wording(
        "mpi.tcp_unreachable",
        "tcp connect",
        r"Open MPI failed to TCP connect to a peer",
    ),
    wording(
        "mpi.tcp_unreachable", "unable to reach", r"At least one pair of MPI processes are unable to reach each other"
    ),
    wording(
        "mpi.openfabrics",
        "openfabrics",
        r"(?:error initializing an OpenFabrics device|No OpenFabrics connection schemes"
        r"|OpenFabrics device found, but there are no active)",
    ),
    wording(
        "mpi.memlock",
        " memory",
        r"(?:failed to register|not enough|limits? .{0,20}amount of) .{0,60}(?:registered|locked) memory",
    ),
    wording("mpi.memlock", "memlock", r"(?:RLIMIT_MEMLOCK|memlock).{0,80}(?:small|limit|bytes)"),
    wording("mpi.shm_small", "space for", r"It appears as if there is not enough space for (?P<path>\S{1,120})"),
    wording(
        "mpi.pmi",
        "pmi",
        r"(?:OMPI|PMI\w?|PMIx).{0,60}(?:was not built with|support not compiled|PMI\w*_Init failed"
        r"|not built with SLURM)",
    ),
    wording("mpi.pmi", "pmix", r"application appears to have been direct launched using \"srun\""),
    wording(
        "mpi.truncated",
        "truncat",
        r"MPI_ERR_TRUNCATE|truncated; (?P<got>\d+) bytes received but buffer size is (?P<wanted>\d+)",
    ),
    wording("mpi.buffer_attached", "invalid buffer pointer", r"Invalid buffer pointer"),
    wording("mpi.fatal", "fatal error in", r"Fatal error in (?:internal_)?(?P<call>P?MPI\w{1,40})"),
    wording("mpi.fatal", "abort(", r"[Aa]bort\((?P<code>\d+)\) on node (?P<rank>\d+) .{0,60}: (?P<why>.{1,100})"),
    wording("mpi.fatal", "an error occurred in", r"\*\*\* An error occurred in (?P<call>MPI_\w{1,40})"),
    wording("mpi.abort", "mpi_abort", r"MPI_ABORT was invoked on rank (?P<rank>\d+)"),
    wording(
        "mpi.abort",
        "mpi_abort",
        r"application called MPI_Abort\(MPI_COMM_WORLD, (?P<code>-?\d+)\) - process (?P<rank>\d+)",
    ),
    wording(
        "mpi.segv",
        "segmentation fault",
        r"(?:Signal: |exited on signal \d+ \(|Caught signal \d+ \(|KILLED BY SIGNAL: \d+ \("
        r"|EXIT STRING: )Segmentation fault",
    ),
    wording(
        "mpi.segv",
        "segmentation fault",
        r"srun: error: (?P<host>\S{1,100}): tasks? (?P<tasks>[\d,-]{1,60}): Segmentation fault",
    ),
    wording("mpi.segv", "invalid permissions", r"Signal code: Invalid permissions"),
    wording(
        "mpi.killed", "killed", r"exited on signal \d+ \(Killed\)|KILLED BY SIGNAL: \d+ \(Killed\)|EXIT STRING: Killed"
    ),
    wording(
        "mpi.killed",
        "killed",
        r"srun: error: (?P<host>\S{1,100}): tasks? (?P<tasks>[\d,-]{1,60}): Killed",
    ),
    wording(
        "mpi.out_of_memory",
        "out of memory",
        r"srun: error: (?P<host>\S{1,100}): tasks? (?P<tasks>[\d,-]{1,60}): Out Of Memory",
    ),
    wording(
        "mpi.out_of_memory",
        "oom",
        r"(?:[Dd]etected|Some of your processes may have been killed by the cgroup).{0,40}(?:oom[-_ ]kill"
        r"|out-of-memory)",
    ),
    wording("mpi.out_of_memory", "out-of-memory", r"may have been killed by the cgroup out-of-memory handler"),
    wording("mpi.out_of_memory", "memory limit", r"(?:[Ee]xceeded|exceeded its) .{0,30}memory limit"),
    wording(
        "mpi.signal",
        "signal",
        r"process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S{1,100}) exited on signal (?P<signal>\d+) \((?"
        r"P<why>[^)]{1,60})\)",
    ),
    wording("mpi.signal", "killed by signal", r"KILLED BY SIGNAL: (?P<signal>\d+) \((?P<why>[^)]{1,60})\)"),
    wording("mpi.time_limit", "time limit", r"(?:CANCELLED AT \S{1,30} )?DUE TO TIME LIMIT"),
    wording("mpi.cancelled", "cancelled at", r"(?:JOB|STEP) \S{1,40} .{0,60}CANCELLED AT"),
    wording("mpi.failed", "non-zero", r"(?P<tool>\w+) detected that one or more processes exited with non-zero status"),
    wording("mpi.failed", "non-zero", r"Primary job  ?terminated normally, but \d+ process returned"),
    wording("mpi.failed", "bad termination", r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"),
    wording(
        "mpi.failed",
        "exited with exit code",
        r"srun: error: (?P<host>\S{1,100}): tasks? (?P<tasks>[\d,-]{1,60}): Exited with exit code (?P<code>\d+)",
    ),
    wording(
        "mpi.failed",
        "has exited due to",
        r"has exited due to process rank (?P<rank>\d+) with PID \d+ on\s?(?:node (?P<host>\S{1,100}))?",
    ),
    wording(
        "mpi.who",
        "noticed that process",
        r"noticed that process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S{1,100})",
    ),
    wording("mpi.who", "process name", r"Process name: \[\S{0,80},(?P<rank>\d+)\]\s*$"),
    wording(
        "mpi.who", "running at", r"(?:=\s+)?(?:RANK (?P<rank>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>\S{1,100})"
    ),
    wording("mpi.who", "exit code", r"^=?\s*[Ee](?:XIT CODE|xit code): +(?P<code>\d+)"),
)

#: Lines that belong to a launcher and say nothing by themselves.
PLAIN = re.compile(
    r"(?:prterun|mpirun|mpiexec\S{0,10}|orterun|srun|slurmstepd|PRTE|ORTE|HYD\w{1,30}|MPIR_\w{1,40}|MPID\w{0,40}"
    r"|PMPI_\w{1,40})(?:: |\()"
    r"|\[mpiexec@|\[proxy:|\[cli_\d|\[\w[\w.-]{0,80}:\d{1,10}\] |\[\w[\w.-]{0,80}:mpi_rank_\d"
    r"|=   (?:CLEANING|YOU CAN IGNORE|EXIT)|={60,}|-{60,}$|Abort is in progress"
)
