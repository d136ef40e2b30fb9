/* Simulated NCCL: the operations, and the faults that a scenario puts into them. */
#define _GNU_SOURCE
#include "nccl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *const call_names[] = {"ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclReduceScatter", "ncclAllGather", "ncclSend", "ncclRecv", "ncclCommInitRank"};

static void sleep_s(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (seconds > 0 && nanosleep(&left, &left))
        ;
}

void nccl_break(struct nccl_comm *comm, int error)
{
    int none = NCCL_OK;
    __atomic_compare_exchange_n(&comm->error, &none, error, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    for (int i = 0; i < comm->size; i++)
        if (comm->peer[i] >= 0)
            shutdown(comm->peer[i], SHUT_RDWR);
}

static int give(struct nccl_comm *comm, int to, const void *data, size_t size)
{
    sleep_s(comm->fault->delay_to_s[to]);
    return nccl_send_all(comm->peer[to], data, size);
}

static char *scratch(struct nccl_comm *comm, size_t size)
{
    if (size > comm->scratch_size) {
        char *more = realloc(comm->scratch, size);
        if (!more)
            return NULL;
        comm->scratch = more;
        comm->scratch_size = size;
    }
    return comm->scratch;
}

/* Chunks of a ring: chunk i holds elements i * each up to the next chunk, the last ones may be short or empty. */
struct ring {
    struct nccl_comm *comm;
    char *data;
    size_t each, count, width;
};
static size_t chunk_bytes(const struct ring *ring, int index)
{
    size_t first = (size_t)index * ring->each;
    size_t left = first >= ring->count ? 0 : ring->count - first;
    return (left < ring->each ? left : ring->each) * ring->width;
}
static char *chunk(const struct ring *ring, int index)
{
    return ring->data + (size_t)index * ring->each * ring->width;
}
static int around(const struct ring *ring, int index)
{
    int size = ring->comm->size;
    return (index % size + size) % size;
}
static int pass_on(const struct ring *ring, int out, int in, void *into)
{
    struct nccl_comm *comm = ring->comm;
    int next = (comm->rank + 1) % comm->size, previous = (comm->rank + comm->size - 1) % comm->size;
    sleep_s(comm->fault->delay_to_s[next]);
    return nccl_exchange(comm->peer[next], chunk(ring, out), chunk_bytes(ring, out), comm->peer[previous], into, chunk_bytes(ring, in));
}
/* After it, chunk r of rank r holds the reduction over all ranks. */
static int reduce_around(const struct ring *ring, enum nccl_type type, enum nccl_op op)
{
    int rank = ring->comm->rank, code = NCCL_OK;
    char *incoming = scratch(ring->comm, ring->each * ring->width + 1);
    if (!incoming)
        return NCCL_SYSTEM_ERROR;
    for (int step = 0; !code && step < ring->comm->size - 1; step++) {
        int out = around(ring, rank - step - 1), in = around(ring, rank - step - 2);
        code = pass_on(ring, out, in, incoming);
        if (!code)
            nccl_accumulate(chunk(ring, in), incoming, chunk_bytes(ring, in) / ring->width, type, op);
    }
    return code;
}
static int gather_around(const struct ring *ring)
{
    int rank = ring->comm->rank, code = NCCL_OK;
    for (int step = 0; !code && step < ring->comm->size - 1; step++) {
        int out = around(ring, rank - step), in = around(ring, rank - step - 1);
        code = pass_on(ring, out, in, chunk(ring, in));
    }
    return code;
}

static int all_reduce(const struct nccl_job *job, size_t width)
{
    int size = job->comm->size;
    struct ring ring = {job->comm, job->out, (job->count + (size_t)size - 1) / (size_t)size, job->count, width};
    if (job->in != job->out)
        memmove(job->out, job->in, job->count * width);
    int code = reduce_around(&ring, job->type, job->op);
    if (!code)
        code = gather_around(&ring);
    if (!code && job->op == NCCL_AVG)
        nccl_divide(job->out, job->count, job->type, size);
    return code;
}

static int reduce(const struct nccl_job *job, size_t width)
{
    struct nccl_comm *comm = job->comm;
    size_t bytes = job->count * width;
    if (comm->rank != job->root)
        return give(comm, job->root, job->in, bytes);
    char *sum = malloc(2 * bytes + 1), *incoming = sum + bytes;
    int code = sum ? NCCL_OK : NCCL_SYSTEM_ERROR;
    if (!code)
        memcpy(sum, job->in, bytes);
    for (int i = 0; !code && i < comm->size; i++) {
        if (i == comm->rank)
            continue;
        code = nccl_receive_all(comm->peer[i], incoming, bytes);
        if (!code)
            nccl_accumulate(sum, incoming, job->count, job->type, job->op);
    }
    if (!code && job->op == NCCL_AVG)
        nccl_divide(sum, job->count, job->type, comm->size);
    if (!code)
        memcpy(job->out, sum, bytes);
    free(sum);
    return code;
}

static int broadcast(const struct nccl_job *job, size_t width)
{
    struct nccl_comm *comm = job->comm;
    size_t bytes = job->count * width;
    int code = NCCL_OK;
    if (comm->rank != job->root)
        return nccl_receive_all(comm->peer[job->root], job->out, bytes);
    if (job->in != job->out)
        memmove(job->out, job->in, bytes);
    for (int i = 0; !code && i < comm->size; i++)
        if (i != comm->rank)
            code = give(comm, i, job->in, bytes);
    return code;
}

static int reduce_scatter(const struct nccl_job *job, size_t width)
{
    struct nccl_comm *comm = job->comm;
    size_t all = job->count * (size_t)comm->size;
    struct ring ring = {comm, malloc(all * width + 1), job->count, all, width};
    if (!ring.data)
        return NCCL_SYSTEM_ERROR;
    memcpy(ring.data, job->in, all * width);
    int code = reduce_around(&ring, job->type, job->op);
    if (!code) {
        memcpy(job->out, chunk(&ring, comm->rank), job->count * width);
        if (job->op == NCCL_AVG)
            nccl_divide(job->out, job->count, job->type, comm->size);
    }
    free(ring.data);
    return code;
}

static int all_gather(const struct nccl_job *job, size_t width)
{
    struct nccl_comm *comm = job->comm;
    struct ring ring = {comm, job->out, job->count, job->count * (size_t)comm->size, width};
    memmove(chunk(&ring, comm->rank), job->in, job->count * width);
    return gather_around(&ring);
}

static size_t elements_written(const struct nccl_job *job)
{
    if (job->kind == NCCL_SEND || (job->kind == NCCL_REDUCE && job->comm->rank != job->root))
        return 0;
    return job->kind == NCCL_ALL_GATHER ? job->count * (size_t)job->comm->size : job->count;
}

static void flip_one_bit(const struct nccl_job *job, const struct sim_nccl *fault, size_t width)
{
    size_t elements = elements_written(job);
    if (!elements)
        return;
    size_t bit = (size_t)fault->flip_bit % (8 * width);
    unsigned char *bytes = (unsigned char *)job->out + fault->flip_element % elements * width;
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static int run_here(const struct nccl_job *job)
{
    struct nccl_comm *comm = job->comm;
    size_t width = nccl_type_size[job->type];
    if (comm->size == 1 && job->kind != NCCL_SEND && job->kind != NCCL_RECEIVE) {
        if (job->in != job->out)
            memmove(job->out, job->in, job->count * width);
        return NCCL_OK;
    }
    if ((job->kind == NCCL_SEND || job->kind == NCCL_RECEIVE) && job->root == comm->rank)
        return NCCL_INVALID_USAGE; /* NCCL can; nothing in ChainerMN does */
    switch (job->kind) {
    case NCCL_ALL_REDUCE:
        return all_reduce(job, width);
    case NCCL_REDUCE:
        return reduce(job, width);
    case NCCL_BROADCAST:
        return broadcast(job, width);
    case NCCL_REDUCE_SCATTER:
        return reduce_scatter(job, width);
    case NCCL_ALL_GATHER:
        return all_gather(job, width);
    case NCCL_SEND:
        return give(comm, job->root, job->in, job->count * width);
    case NCCL_RECEIVE:
        return nccl_receive_all(comm->peer[job->root], job->out, job->count * width);
    case NCCL_INIT:
        break;
    }
    return NCCL_INTERNAL_ERROR;
}

int nccl_run(const struct nccl_job *job)
{
    struct nccl_comm *comm = job->comm;
    const struct sim_nccl *fault = comm->fault;
    long number = __atomic_add_fetch(&comm->operations, 1, __ATOMIC_RELAXED);
    nccl_info(NCCL_LOG_COLL, "%s: opCount %lx sendbuff %p recvbuff %p count %zu datatype %d op %d root %d comm %p [nranks=%d] stream %p",
              call_names[job->kind] + 4, number - 1, job->in, job->out, job->count, job->type, job->op, job->root, (void *)comm, comm->size, job->stream);
    int code = sim_fault(call_names[job->kind], comm->device, comm->rank);
    sleep_s(fault->delay_s);
    if (!code && fault->fail_at == number)
        code = fault->fail_code;
    if (!code)
        code = __atomic_load_n(&comm->error, __ATOMIC_SEQ_CST);
    if (!code)
        code = run_here(job);
    if (!code && fault->flip_at == number)
        flip_one_bit(job, fault, nccl_type_size[job->type]);
    if (code) {
        WARN("%s: operation %ld failed on rank %d with error %d", call_names[job->kind], number, comm->rank, code);
        nccl_break(comm, code);
    }
    return code;
}
