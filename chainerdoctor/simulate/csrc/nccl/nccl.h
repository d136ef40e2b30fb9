/* What the simulated NCCL's files share. Types follow NCCL's public nccl.h.
 *
 * Every pair of ranks is joined by one TCP connection, on which all of a communicator's operations run in order. Data
 * lies in host memory; the simulated CUDA's device pointers are host pointers.
 */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H
#include "../scenario.h"

#include <netinet/in.h>
#include <pthread.h>

enum nccl_result {
    NCCL_OK,
    NCCL_CUDA_ERROR,
    NCCL_SYSTEM_ERROR,
    NCCL_INTERNAL_ERROR,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE_ERROR,
};
enum nccl_type { NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32, NCCL_INT64, NCCL_UINT64, NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16, NCCL_TYPES };
enum nccl_op { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OPS };

/* NCCL's layout too: 8 bytes of magic, then the address on which the bootstrap root listens. */
struct nccl_unique_id {
    char bytes[128];
};

struct nccl_comm {
    int rank, size, device;
    int *peer; /* socket per rank, -1 for this one */
    int error; /* what ncclCommGetAsyncError tells; once set, every operation fails with it */
    long operations;
    char *scratch;
    size_t scratch_size;
    pthread_mutex_t busy; /* held while an operation runs: abort waits for it */
    const struct sim_nccl *fault;
};

int nccl_version(void); /* the scenario's, for ranks that have no version of their own */

/* log.c: NCCL's own lines, level and file by NCCL_DEBUG, NCCL_DEBUG_SUBSYS, NCCL_DEBUG_FILE */
enum nccl_subsystem { NCCL_LOG_INIT, NCCL_LOG_COLL };
void nccl_warn(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void nccl_info(enum nccl_subsystem subsystem, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nccl_announce_version(void);
#define WARN(...) nccl_warn(__FILE__, __LINE__, __VA_ARGS__)

/* bootstrap.c */
int nccl_join(struct nccl_comm *comm, const struct nccl_unique_id *id);
int ncclGetUniqueId(struct nccl_unique_id *out);
int nccl_current_device(void); /* simulated CUDA's current device, -1 if no CUDA is loaded */

/* transfer.c: all of it, or an error. A broken connection is NCCL_REMOTE_ERROR. */
int nccl_send_all(int socket, const void *data, size_t size);
int nccl_receive_all(int socket, void *data, size_t size);
/* Both at once, so that a ring of large messages cannot block itself. */
int nccl_exchange(int to, const void *out, size_t out_size, int from, void *in, size_t in_size);

/* reduce.c */
extern const size_t nccl_type_size[NCCL_TYPES];
void nccl_accumulate(void *into, const void *from, size_t count, enum nccl_type type, enum nccl_op op);
void nccl_divide(void *values, size_t count, enum nccl_type type, int by);

/* collective.c */
enum nccl_kind { NCCL_ALL_REDUCE, NCCL_REDUCE, NCCL_BROADCAST, NCCL_REDUCE_SCATTER, NCCL_ALL_GATHER, NCCL_SEND, NCCL_RECEIVE, NCCL_INIT };
struct nccl_job {
    enum nccl_kind kind;
    const void *in;
    void *out;
    size_t count;
    enum nccl_type type;
    enum nccl_op op;
    int root; /* or the peer of a send or receive */
    struct nccl_comm *comm;
    void *stream;
    struct nccl_unique_id id; /* NCCL_INIT only */
};
int nccl_run(const struct nccl_job *job);
/* Close the connections so that no peer waits for this rank, and remember the error. */
void nccl_break(struct nccl_comm *comm, int error);
#endif
