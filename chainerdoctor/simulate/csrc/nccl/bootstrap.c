/* Simulated NCCL: how ranks find each other.
 *
 * The root (whoever made the unique id) listens; every rank tells it where it listens itself, gets everyone's address and
 * then connects to all lower ranks. IPv4 only.
 */
#define _GNU_SOURCE
#include "nccl.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct member {
    int rank, size, version, device, process;
    uint64_t host;
    struct sockaddr_in listens;
};

int nccl_current_device(void)
{
    int device = -1;
    void *runtime = dlopen("libcudart.so.12", RTLD_LAZY | RTLD_NOLOAD);
    if (runtime) {
        int (*get)(int *) = (int (*)(int *))dlsym(runtime, "cudaGetDevice");
        if (!get || get(&device))
            device = -1;
        dlclose(runtime);
    }
    return device;
}

/* NCCL_SOCKET_IFNAME: a list of prefixes; ^ excludes, = takes whole names. 0 no, 1 if nothing else is there, 2 yes. */
static int suits(const char *name)
{
    const char *set = getenv("NCCL_SOCKET_IFNAME");
    if (!set || !*set)
        return strncmp(name, "lo", 2) && strncmp(name, "docker", 6) ? 2 : 1;
    int excludes = *set == '^', whole = set[excludes] == '=', hit = 0;
    char list[256], *rest;
    snprintf(list, sizeof list, "%s", set + excludes + whole);
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        hit |= whole ? !strcmp(name, word) : !strncmp(name, word, strlen(word));
    return hit != excludes ? 2 : 0;
}

static int own_address(struct sockaddr_in *out, char name[IFNAMSIZ])
{
    struct ifaddrs *all, *one;
    int best = 0;
    if (getifaddrs(&all))
        return NCCL_SYSTEM_ERROR;
    for (one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_RUNNING))
            continue;
        int fit = suits(one->ifa_name);
        if (fit > best) {
            best = fit;
            memcpy(out, one->ifa_addr, sizeof *out);
            snprintf(name, IFNAMSIZ, "%s", one->ifa_name);
        }
    }
    freeifaddrs(all);
    if (!best) {
        WARN("Bootstrap : no socket interface found");
        return NCCL_INTERNAL_ERROR;
    }
    return NCCL_OK;
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t size = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address->sin_port = 0;
    if (fd >= 0 && !bind(fd, (void *)address, size) && !listen(fd, 1024) && !getsockname(fd, (void *)address, &size))
        return fd;
    WARN("Call to bind failed : %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static void set_no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* A refused connection is tried for some seconds, as NCCL does: the other side may not listen yet. */
static int connect_to(const struct sockaddr_in *address)
{
    enum { TRIES = 250, PAUSE_US = 20000 };
    int error = 0;
    for (int i = 0; i < TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connect(fd, (const void *)address, sizeof *address)) {
            set_no_delay(fd);
            return fd;
        }
        error = errno;
        if (fd >= 0)
            close(fd);
        if (error != ECONNREFUSED && error != EINTR)
            break;
        usleep(PAUSE_US);
    }
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    WARN("socketStartConnect: Connect to %s<%d> failed : %s", text, ntohs(address->sin_port), strerror(error));
    return -1;
}

/* The bootstrap root: gathers every rank's address, then answers all of them. */
static void *serve_root(void *argument)
{
    int listener = (int)(intptr_t)argument, size = 1, joined = 0, *fd = NULL;
    struct member *members = NULL, member;
    while (joined < size) {
        int from = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (from < 0 && errno == EINTR)
            continue;
        if (from < 0)
            break;
        if (nccl_receive_all(from, &member, sizeof member) || member.rank < 0 || member.rank >= member.size) {
            close(from);
            continue;
        }
        if (!members) {
            size = member.size;
            members = calloc((size_t)size, sizeof *members);
            fd = calloc((size_t)size, sizeof *fd);
            if (!members || !fd)
                break;
        }
        if (member.size != size) {
            WARN("Bootstrap Root : mismatch in rank count from procs %d : %d", size, member.size);
            close(from);
            continue;
        }
        if (fd[member.rank]) {
            WARN("Bootstrap Root : rank %d of %d ranks has already checked in", member.rank, size);
            close(from);
            continue;
        }
        members[member.rank] = member;
        fd[member.rank] = from;
        joined++;
    }
    /* Ranks of this process come last: once they have their answer they may end it, and this thread with it. */
    for (int own = 0; own < 2; own++)
        for (int i = 0; joined == size && i < size; i++)
            if ((members[i].process == getpid()) == own)
                nccl_send_all(fd[i], members, (size_t)size * sizeof *members);
    for (int i = 0; fd && i < size; i++)
        if (fd[i])
            close(fd[i]);
    close(listener);
    free(members);
    free(fd);
    return NULL;
}

SIM_EXPORT int ncclGetUniqueId(struct nccl_unique_id *out)
{
    struct sockaddr_in address;
    char name[IFNAMSIZ], text[INET_ADDRSTRLEN];
    pthread_t thread;
    if (!sim_scenario())
        return NCCL_SYSTEM_ERROR;
    int code = sim_fault("ncclGetUniqueId", nccl_current_device(), -1);
    if (!code)
        code = own_address(&address, name);
    if (code)
        return code;
    int listener = listen_on(&address);
    if (listener < 0)
        return NCCL_SYSTEM_ERROR;
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    nccl_info(NCCL_LOG_INIT, "Bootstrap : Using %s:%s<0>", name, text);
    memset(out, 0, sizeof *out);
    if (getrandom(out->bytes, 8, 0) != 8 || pthread_create(&thread, NULL, serve_root, (void *)(intptr_t)listener)) {
        close(listener);
        return NCCL_SYSTEM_ERROR;
    }
    pthread_detach(thread);
    memcpy(out->bytes + 8, &address, sizeof address);
    return NCCL_OK;
}

/* Two names of one host must not happen, and one name for two hosts does: NCCL uses name and boot id. */
static uint64_t host_hash(void)
{
    char text[256] = "";
    gethostname(text, 64);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file) {
        size_t used = strlen(text);
        if (!fgets(text + used, (int)(sizeof text - used), file))
            text[used] = 0;
        fclose(file);
    }
    uint64_t hash = 5381;
    for (const char *at = text; *at; at++)
        hash = hash * 33 ^ (unsigned char)*at;
    return hash;
}

static int agree(const struct nccl_comm *comm, const struct member *members)
{
    for (int i = 0; i < comm->size; i++) {
        if (members[i].version != members[0].version) {
            WARN("Mismatched NCCL version detected : rank %d version %d rank %d version %d", i, members[i].version, 0, members[0].version);
            return NCCL_INVALID_USAGE;
        }
        for (int k = 0; k < i; k++)
            if (members[i].device >= 0 && members[i].device == members[k].device && members[i].host == members[k].host) {
                WARN("Duplicate GPU detected : rank %d and rank %d both on CUDA device %x", k, i, 0x7000 + 0x8000 * members[i].device);
                return NCCL_INVALID_USAGE;
            }
    }
    return NCCL_OK;
}

static int meet(struct nccl_comm *comm, const struct member *members, int listener)
{
    int code = NCCL_OK;
    for (int i = 0; !code && i < comm->rank; i++) {
        comm->peer[i] = connect_to(&members[i].listens);
        code = comm->peer[i] < 0 ? NCCL_SYSTEM_ERROR : nccl_send_all(comm->peer[i], &comm->rank, sizeof comm->rank);
    }
    for (int i = comm->rank + 1; !code && i < comm->size; i++) {
        int rank = -1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        code = fd < 0 ? NCCL_SYSTEM_ERROR : nccl_receive_all(fd, &rank, sizeof rank);
        if (!code && (rank <= comm->rank || rank >= comm->size))
            code = NCCL_INTERNAL_ERROR;
        if (!code) {
            set_no_delay(fd);
            comm->peer[rank] = fd;
        }
    }
    return code;
}

int nccl_join(struct nccl_comm *comm, const struct nccl_unique_id *id)
{
    struct sockaddr_in root;
    char name[IFNAMSIZ];
    struct member me = {.rank = comm->rank, .size = comm->size, .device = comm->device, .process = getpid(), .host = host_hash()};
    me.version = comm->fault->version ? comm->fault->version : nccl_version();
    int code = own_address(&me.listens, name);
    if (code)
        return code;
    int listener = listen_on(&me.listens);
    if (listener < 0)
        return NCCL_SYSTEM_ERROR;
    memcpy(&root, id->bytes + 8, sizeof root);
    int fd = connect_to(&root);
    struct member *members = calloc((size_t)comm->size, sizeof *members);
    code = fd < 0 || !members ? NCCL_SYSTEM_ERROR : nccl_send_all(fd, &me, sizeof me);
    if (!code)
        code = nccl_receive_all(fd, members, (size_t)comm->size * sizeof *members);
    if (!code)
        code = agree(comm, members);
    if (!code)
        code = meet(comm, members, listener);
    if (fd >= 0)
        close(fd);
    close(listener);
    free(members);
    return code;
}
