/* Simulated NCCL: the public functions, and groups of them. */
#include "nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int nccl_version(void)
{
    return sim_scenario() ? atoi(sim_scenario()->system[SIM_nccl_version]) : 0;
}

SIM_EXPORT int ncclGetVersion(int *out)
{
    if (!out || !sim_scenario())
        return NCCL_INVALID_ARGUMENT;
    *out = nccl_version();
    /* a program that asks before it has a communicator has no rank yet: MPI launchers tell it by these variables */
    static const char *const names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        int rank = text ? atoi(text) : -1;
        if (rank >= 0 && rank < SIM_RANKS && sim_scenario()->nccl[rank].version) {
            *out = sim_scenario()->nccl[rank].version;
            break;
        }
    }
    return NCCL_OK;
}

SIM_EXPORT const char *ncclGetErrorString(int code)
{
    static const char *const text[] = {
        "no error", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)", "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error"};
    return code >= 0 && code < (int)(sizeof text / sizeof *text) ? text[code] : "unknown result code";
}

static struct nccl_comm *new_comm(int size, int rank)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);
    if (!comm || !(comm->peer = malloc((size_t)size * sizeof *comm->peer))) {
        free(comm);
        return NULL;
    }
    memset(comm->peer, 0xff, (size_t)size * sizeof *comm->peer);
    comm->rank = rank;
    comm->size = size;
    comm->device = nccl_current_device();
    comm->fault = &sim_scenario()->nccl[rank];
    pthread_mutex_init(&comm->busy, NULL);
    return comm;
}
static void free_comm(struct nccl_comm *comm)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->peer[i] >= 0)
            close(comm->peer[i]);
    pthread_mutex_destroy(&comm->busy);
    free(comm->peer);
    free(comm->scratch);
    free(comm);
}

static int initialise(struct nccl_comm *comm, const struct nccl_unique_id *id)
{
    unsigned long long magic;
    memcpy(&magic, id->bytes, sizeof magic);
    if (comm->fault->absent)
        for (;;)
            pause();
    int code = sim_fault("ncclCommInitRank", comm->device, comm->rank);
    if (comm->rank == 0)
        nccl_announce_version();
    int device = comm->device < 0 ? comm->rank : comm->device;
    nccl_info(NCCL_LOG_INIT, "comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0x%llx - Init START", (void *)comm, comm->rank, comm->size, device, device, 0x7000 + 0x8000 * device, magic);
    if (!code)
        code = nccl_join(comm, id);
    if (!code)
        nccl_info(NCCL_LOG_INIT, "comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0x%llx - Init COMPLETE", (void *)comm, comm->rank, comm->size, device, device, 0x7000 + 0x8000 * device, magic);
    return code;
}

/* --- groups: calls between ncclGroupStart and ncclGroupEnd are kept and then run side by side */
enum { MOST_JOBS = 4096 };
static __thread int depth, jobs;
static __thread struct nccl_job *queue;

/* Jobs that share a connection run one after another: collectives of one communicator, and sends or receives between two
 * ranks in one direction. */
static int same_lane(const struct nccl_job *a, const struct nccl_job *b)
{
    int a_direct = a->kind == NCCL_SEND || a->kind == NCCL_RECEIVE, b_direct = b->kind == NCCL_SEND || b->kind == NCCL_RECEIVE;
    if (a->comm != b->comm || a_direct != b_direct)
        return 0;
    return !a_direct || (a->kind == b->kind && a->root == b->root);
}
struct lane {
    const struct nccl_job *queue;
    int jobs, first, code;
    pthread_t thread;
    int started;
};
static int run_job(const struct nccl_job *job)
{
    return job->kind == NCCL_INIT ? initialise(job->comm, &job->id) : nccl_run(job);
}
static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    for (int i = lane->first; i < lane->jobs && !lane->code; i++)
        if (same_lane(&lane->queue[lane->first], &lane->queue[i]))
            lane->code = run_job(&lane->queue[i]);
    return NULL;
}
static int run_lanes(const struct nccl_job *todo, int count)
{
    struct lane *lanes = calloc((size_t)count, sizeof *lanes);
    int used = 0, code = NCCL_OK;
    if (!lanes)
        return NCCL_SYSTEM_ERROR;
    for (int i = 0; i < count; i++) {
        int known = 0;
        for (int k = 0; k < used && !known; k++)
            known = same_lane(&todo[lanes[k].first], &todo[i]);
        if (!known)
            lanes[used++] = (struct lane){.queue = todo, .jobs = count, .first = i};
    }
    for (int i = 1; i < used; i++)
        lanes[i].started = !pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]);
    if (used)
        run_lane(&lanes[0]);
    for (int i = 0; i < used; i++) {
        if (i && lanes[i].started)
            pthread_join(lanes[i].thread, NULL);
        else if (i)
            lanes[i].code = NCCL_SYSTEM_ERROR;
        if (!code)
            code = lanes[i].code;
    }
    free(lanes);
    return code;
}
/* Collectives first, then sends and receives: both would use the same connections. Every rank keeps this order. */
static int run_group(void)
{
    struct nccl_job *mine = queue, *part = calloc((size_t)(jobs ? jobs : 1), sizeof *part);
    int count = jobs, code = part ? NCCL_OK : NCCL_SYSTEM_ERROR;
    for (int direct = 0; direct < 2 && !code; direct++) {
        int chosen = 0;
        for (int i = 0; i < count; i++)
            if ((mine[i].kind == NCCL_SEND || mine[i].kind == NCCL_RECEIVE) == direct)
                part[chosen++] = mine[i];
        code = run_lanes(part, chosen);
    }
    jobs = 0;
    free(part);
    return code;
}

SIM_EXPORT int ncclGroupStart(void)
{
    depth++;
    return NCCL_OK;
}
SIM_EXPORT int ncclGroupEnd(void)
{
    if (!depth) {
        WARN("ncclGroupEnd: not in a group call.");
        return NCCL_INVALID_USAGE;
    }
    return --depth ? NCCL_OK : run_group();
}

static int submit(const struct nccl_job *job)
{
    if (job->kind != NCCL_INIT && !job->comm) {
        WARN("%s : comm argument is NULL", "ncclEnqueueCheck");
        return NCCL_INVALID_ARGUMENT;
    }
    if ((int)job->type < 0 || job->type >= NCCL_TYPES) {
        WARN("Invalid type %d", job->type);
        return NCCL_INVALID_ARGUMENT;
    }
    if ((int)job->op < 0 || job->op >= NCCL_OPS) {
        WARN("Invalid reduction operation %d", job->op);
        return NCCL_INVALID_ARGUMENT;
    }
    if (job->root < 0 || (job->comm && job->root >= job->comm->size)) {
        WARN("Invalid root %d (root should be in the 0..%d range)", job->root, job->comm->size);
        return NCCL_INVALID_ARGUMENT;
    }
    if (!depth) {
        if (job->kind == NCCL_INIT)
            return run_job(job);
        pthread_mutex_lock(&job->comm->busy);
        int code = run_job(job);
        pthread_mutex_unlock(&job->comm->busy);
        return code;
    }
    if (!queue && !(queue = malloc(MOST_JOBS * sizeof *queue)))
        return NCCL_SYSTEM_ERROR;
    if (jobs == MOST_JOBS) {
        WARN("more than %d calls in one group are not simulated", MOST_JOBS);
        return NCCL_INTERNAL_ERROR;
    }
    queue[jobs++] = *job;
    return NCCL_OK;
}

SIM_EXPORT int ncclCommInitRank(struct nccl_comm **out, int size, struct nccl_unique_id id, int rank)
{
    if (!sim_scenario())
        return NCCL_SYSTEM_ERROR;
    if (size < 1 || rank < 0 || rank >= size || size > SIM_RANKS) {
        WARN("Invalid rank requested : %d/%d", rank, size);
        return NCCL_INVALID_ARGUMENT;
    }
    struct nccl_comm *comm = new_comm(size, rank);
    if (!comm)
        return NCCL_SYSTEM_ERROR;
    *out = comm;
    struct nccl_job job = {.kind = NCCL_INIT, .comm = comm, .id = id};
    int code = submit(&job);
    if (code) {
        free_comm(comm);
        *out = NULL;
    }
    return code;
}
SIM_EXPORT int ncclCommInitAll(struct nccl_comm **out, int size, const int *devices)
{
    struct nccl_unique_id id;
    int code = ncclGetUniqueId(&id);
    if (code)
        return code;
    ncclGroupStart();
    for (int i = 0; i < size && !code; i++) {
        code = ncclCommInitRank(&out[i], size, id, i);
        if (!code)
            out[i]->device = devices ? devices[i] : i;
    }
    int end = ncclGroupEnd();
    return code ? code : end;
}

/* Both end the connections; abort also wakes a thread of this process that is inside an operation. */
SIM_EXPORT int ncclCommAbort(struct nccl_comm *comm)
{
    if (!comm)
        return NCCL_OK;
    nccl_break(comm, NCCL_INTERNAL_ERROR);
    pthread_mutex_lock(&comm->busy);
    pthread_mutex_unlock(&comm->busy);
    free_comm(comm);
    return NCCL_OK;
}
SIM_EXPORT int ncclCommDestroy(struct nccl_comm *comm)
{
    if (comm)
        free_comm(comm);
    return NCCL_OK;
}

#define GETTER(function, member)                                        \
    SIM_EXPORT int function(struct nccl_comm *comm, int *out)           \
    {                                                                   \
        if (!comm || !out) {                                            \
            WARN(#function " : argument is NULL");                      \
            return NCCL_INVALID_ARGUMENT;                               \
        }                                                               \
        *out = comm->member;                                            \
        return NCCL_OK;                                                 \
    }
GETTER(ncclCommCuDevice, device)
GETTER(ncclCommUserRank, rank)
GETTER(ncclCommCount, size)
GETTER(ncclCommGetAsyncError, error)

SIM_EXPORT int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_ALL_REDUCE, in, out, count, (enum nccl_type)type, (enum nccl_op)op, 0, comm, stream, {{0}}});
}
SIM_EXPORT int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_REDUCE, in, out, count, (enum nccl_type)type, (enum nccl_op)op, root, comm, stream, {{0}}});
}
SIM_EXPORT int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_BROADCAST, in, out, count, (enum nccl_type)type, NCCL_SUM, root, comm, stream, {{0}}});
}
SIM_EXPORT int ncclBcast(void *data, size_t count, int type, int root, struct nccl_comm *comm, void *stream)
{
    return ncclBroadcast(data, data, count, type, root, comm, stream);
}
SIM_EXPORT int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_REDUCE_SCATTER, in, out, count, (enum nccl_type)type, (enum nccl_op)op, 0, comm, stream, {{0}}});
}
SIM_EXPORT int ncclAllGather(const void *in, void *out, size_t count, int type, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_ALL_GATHER, in, out, count, (enum nccl_type)type, NCCL_SUM, 0, comm, stream, {{0}}});
}
SIM_EXPORT int ncclSend(const void *in, size_t count, int type, int peer, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_SEND, in, NULL, count, (enum nccl_type)type, NCCL_SUM, peer, comm, stream, {{0}}});
}
SIM_EXPORT int ncclRecv(void *out, size_t count, int type, int peer, struct nccl_comm *comm, void *stream)
{
    return submit(&(struct nccl_job){NCCL_RECEIVE, NULL, out, count, (enum nccl_type)type, NCCL_SUM, peer, comm, stream, {{0}}});
}
