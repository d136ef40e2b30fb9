/* A scenario as the simulated libraries see it.
 *
 * The file that people write is parsed and checked by simulate/scenario.py, which hands the libraries a plan: the same
 * content, flat and numeric, one statement a line. All three libraries read the plan through this header, so NVML, CUDA
 * and NCCL agree on what the machine is.
 *
 * Environment: CHAINERDOCTOR_SIM_PLAN  the plan's path
 *              CHAINERDOCTOR_SIM_T0    epoch seconds at which t = 0; else the first call in this process
 *              CHAINERDOCTOR_SIM_SHM   directory of the memory counters that CUDA writes and NVML reads
 */
#ifndef CHAINERDOCTOR_SCENARIO_H
#define CHAINERDOCTOR_SCENARIO_H
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))

enum { SIM_GPUS = 64, SIM_TERMS = 6, SIM_LINKS = 18, SIM_PROCESSES = 32, SIM_MIGS = 7, SIM_TEXT = 96, SIM_RANKS = 256 };

enum sim_number {
#define GPU_NUMBER(name, fallback, unit, meaning) SIM_##name,
#define GPU_TEXT(name, fallback, meaning)
#define SYSTEM_TEXT(name, fallback, meaning)
#include "keys.h"
#undef GPU_NUMBER
#undef GPU_TEXT
#undef SYSTEM_TEXT
    SIM_NUMBERS
};
enum sim_text {
#define GPU_NUMBER(name, fallback, unit, meaning)
#define GPU_TEXT(name, fallback, meaning) SIM_##name,
#define SYSTEM_TEXT(name, fallback, meaning)
#include "keys.h"
#undef GPU_NUMBER
#undef GPU_TEXT
#undef SYSTEM_TEXT
    SIM_TEXTS
};
enum sim_system {
#define GPU_NUMBER(name, fallback, unit, meaning)
#define GPU_TEXT(name, fallback, meaning)
#define SYSTEM_TEXT(name, fallback, meaning) SIM_##name,
#include "keys.h"
#undef GPU_NUMBER
#undef GPU_TEXT
#undef SYSTEM_TEXT
    SIM_SYSTEMS
};

/* base + the terms, each a function of the time t in seconds since t = 0. */
struct sim_term {
    enum { SIM_STEP, SIM_RAMP, SIM_GROW, SIM_SPIKE, SIM_CUDA } kind;
    double amount, period, width;
};
struct sim_value {
    double base;
    int terms;
    struct sim_term term[SIM_TERMS];
    int error;         /* 0, or the NVML code that the value's call returns from error_from on */
    double error_from; /* seconds */
};
struct sim_process {
    unsigned pid;
    uint64_t bytes;
    int graphics;
};
struct sim_link {
    int down, remote; /* remote: GPU index, -1 for an NVSwitch */
    uint64_t crc, replay, recovery;
};
struct sim_mig {
    char uuid[SIM_TEXT];
    unsigned gpu_instance, compute_instance;
    uint64_t bytes_total, bytes_used;
};
struct sim_gpu {
    int index;
    double lost_at; /* seconds, or infinite: from then on every call about this GPU fails */
    struct sim_value number[SIM_NUMBERS];
    char text[SIM_TEXTS][SIM_TEXT];
    int processes, cuda_processes, migs;
    struct sim_process process[SIM_PROCESSES];
    struct sim_link link[SIM_LINKS];
    struct sim_mig mig[SIM_MIGS];
};
struct sim_pair {
    int topology, p2p[5]; /* p2p: read, write, NVLink, atomics, PCI */
};

/* What goes wrong in a call. Matches a function name (a trailing * matches any rest), a GPU and a rank (-1: any). */
struct sim_fault {
    char call[SIM_TEXT];
    int gpu, rank;
    double from;    /* seconds */
    long at;        /* the n-th matching call only, counted from 1 in each process; 0: every one */
    int error;      /* 0: none */
    int crash;      /* die by SIGSEGV */
    int flip;       /* one bit of what the call writes is wrong */
    double delay_s; /* busy for so long first */
    double block_s; /* sleep for so long first; infinite: for ever */
    long seen;
};

/* What goes wrong in NCCL on one rank. Operations are counted from 1 in each communicator. */
struct sim_nccl {
    int version; /* 0: the system's */
    int absent;  /* never joins: ncclCommInitRank does not return and opens no connection */
    double delay_s, delay_to_s[SIM_RANKS];
    long fail_at, flip_at;
    int fail_code, flip_bit;
    size_t flip_element;
};

struct scenario {
    int gpus, faults;
    char system[SIM_SYSTEMS][SIM_TEXT];
    struct sim_gpu gpu[SIM_GPUS];
    struct sim_pair pair[SIM_GPUS][SIM_GPUS];
    struct sim_fault *fault;
    struct sim_nccl nccl[SIM_RANKS];
};

/* The scenario of this process, read once; NULL (and one line on stderr, once) if there is none or it cannot be read. */
const struct scenario *sim_scenario(void);

/* Read a plan into zeroed memory; 0, or -1 after one line on stderr. */
int sim_read_plan(const char *path, struct scenario *into);

/* Seconds since t = 0. */
double sim_now_s(void);

/* 0 and the value now, or an NVML error code. */
int sim_value(const struct sim_gpu *gpu, enum sim_number key, uint64_t *out);

/* The value without the part that follows CUDA: what other programs are said to use. */
uint64_t sim_value_of_others(const struct sim_gpu *gpu, enum sim_number key);

/* Run the faults of a call: delays, blocks, crashes here; returns the error code to give, or 0. gpu, rank: -1 for none. */
int sim_fault(const char *call, int gpu, int rank);

/* Flip one bit in the middle of what a call wrote, if a fault of the last sim_fault in this thread says so. */
void sim_spoil(void *written, size_t bytes);

/* Whether the GPU has fallen off the bus. */
int sim_lost(const struct sim_gpu *gpu);

/* Bytes that simulated CUDA has allocated on a GPU, over all live processes. The board is shared through a file. */
struct sim_user {
    uint32_t pid;
    uint32_t spare;
    uint64_t start; /* process start time in clock ticks, so that a reused pid is not taken for the old process */
    uint64_t bytes;
};
struct sim_board {
    struct sim_user user[SIM_GPUS];
};
/* NULL if the file cannot be made. */
struct sim_board *sim_board(int gpu);
uint64_t sim_board_bytes(struct sim_board *board);
/* Add (or take, negative) bytes for this process. Fails with -1 if the sum over processes would pass limit. */
int sim_board_add(struct sim_board *board, int64_t bytes, uint64_t limit);

/* Start time of a process in clock ticks after boot, 0 if there is no such process. */
uint64_t sim_process_start(unsigned pid);
#endif
