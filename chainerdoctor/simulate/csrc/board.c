/* Who holds how much simulated GPU memory: one small shared file per GPU.
 *
 * A process that dies without freeing leaves its entry behind; entries of dead processes do not count and are reused, as
 * the driver of a real GPU takes memory back from the dead.
 */
#define _GNU_SOURCE
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    struct sim_board *board;
    int file;
} open_boards[SIM_GPUS];
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

uint64_t sim_process_start(unsigned pid)
{
    char path[64], line[1024], *field;
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    /* the name in field 2 may hold blanks: count fields from its closing bracket; the start time is field 22 */
    if (fgets(line, sizeof line, file) && (field = strrchr(line, ')'))) {
        for (int i = 0; i < 20 && field; i++)
            field = strchr(field + 1, ' ');
        if (field)
            start = strtoull(field + 1, NULL, 10);
    }
    fclose(file);
    return start;
}

struct sim_board *sim_board(int gpu)
{
    if (__atomic_load_n(&open_boards[gpu].board, __ATOMIC_ACQUIRE))
        return open_boards[gpu].board;
    struct sim_board *board = NULL;
    pthread_mutex_lock(&gate);
    if (!(board = open_boards[gpu].board)) {
        const char *folder = getenv("CHAINERDOCTOR_SIM_SHM");
        char path[512];
        snprintf(path, sizeof path, "%s/gpu%d", folder ? folder : "/dev/shm", gpu);
        int file = folder ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
        void *map = MAP_FAILED;
        if (file >= 0 && !ftruncate(file, sizeof *board))
            map = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map == MAP_FAILED) {
            static int told;
            if (!told++)
                fprintf(stderr, "chainerdoctor simulation: cannot share memory counters in CHAINERDOCTOR_SIM_SHM (%s): %s\n",
                        folder ? path : "not set", folder ? strerror(errno) : "set it to a directory");
            if (file >= 0)
                close(file);
        } else {
            board = map;
            open_boards[gpu].file = file;
            __atomic_store_n(&open_boards[gpu].board, board, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&gate);
    return board;
}

static int alive(const struct sim_user *user)
{
    return user->pid && (!kill((pid_t)user->pid, 0) || errno == EPERM);
}

uint64_t sim_board_bytes(struct sim_board *board)
{
    uint64_t sum = 0;
    for (int i = 0; i < SIM_GPUS; i++)
        if (board->user[i].bytes && alive(&board->user[i]))
            sum += __atomic_load_n(&board->user[i].bytes, __ATOMIC_RELAXED);
    return sum;
}

/* This process's entry, made if need be; entries of the dead (or of an older process with the same pid) are emptied. */
static struct sim_user *own_entry(struct sim_board *board)
{
    static __thread uint64_t my_start;
    static __thread pid_t my_pid;
    pid_t pid = getpid();
    if (my_pid != pid) {
        my_pid = pid;
        my_start = sim_process_start((unsigned)pid);
    }
    struct sim_user *empty = NULL;
    for (int i = 0; i < SIM_GPUS; i++) {
        struct sim_user *user = &board->user[i];
        if (user->pid == (uint32_t)pid && user->start == my_start)
            return user;
        if (!alive(user) || sim_process_start(user->pid) != user->start)
            memset(user, 0, sizeof *user);
        if (!user->pid && !empty)
            empty = user;
    }
    if (empty) {
        empty->pid = (uint32_t)pid;
        empty->start = my_start;
    }
    return empty;
}

int sim_board_add(struct sim_board *board, int64_t bytes, uint64_t limit)
{
    int gpu = 0, result = -1;
    while (gpu < SIM_GPUS && open_boards[gpu].board != board)
        gpu++;
    if (gpu == SIM_GPUS)
        return -1;
    pthread_mutex_lock(&gate);
    /* a record lock belongs to the process and ends with it, so a killed holder blocks nobody */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(open_boards[gpu].file, F_SETLKW, &lock) && errno == EINTR)
        ;
    struct sim_user *mine = own_entry(board);
    if (mine && (bytes <= 0 || sim_board_bytes(board) + (uint64_t)bytes <= limit)) {
        mine->bytes = bytes < 0 && (uint64_t)-bytes > mine->bytes ? 0 : mine->bytes + (uint64_t)bytes;
        result = 0;
    }
    lock.l_type = F_UNLCK;
    fcntl(open_boards[gpu].file, F_SETLK, &lock);
    pthread_mutex_unlock(&gate);
    return result;
}
