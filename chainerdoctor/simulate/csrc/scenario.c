/* Reading the plan, and what it says now. See scenario.h. */
#define _GNU_SOURCE
#include "scenario.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GPU_IS_LOST = 15 };

static const char *const number_names[] = {
#define GPU_NUMBER(name, fallback, unit, meaning) #name,
#define GPU_TEXT(name, fallback, meaning)
#define SYSTEM_TEXT(name, fallback, meaning)
#include "keys.h"
#undef GPU_NUMBER
#undef GPU_TEXT
};
static const char *const text_names[] = {
#define GPU_NUMBER(name, fallback, unit, meaning)
#define GPU_TEXT(name, fallback, meaning) #name,
#include "keys.h"
#undef GPU_TEXT
#undef SYSTEM_TEXT
};
static const char *const system_names[] = {
#define GPU_TEXT(name, fallback, meaning)
#define SYSTEM_TEXT(name, fallback, meaning) #name,
#include "keys.h"
#undef GPU_NUMBER
#undef GPU_TEXT
#undef SYSTEM_TEXT
};

static struct scenario machine;
static int loaded;
static double start_s;

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int position(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return i;
    return -1;
}

/* The next word of a line that strtok_r walks; NULL at its end. */
static char *word(char **rest)
{
    return strtok_r(NULL, " \n", rest);
}
static int take_double(char **rest, double *out)
{
    char *text = word(rest), *end;
    if (!text)
        return -1;
    *out = strtod(text, &end);
    return *end ? -1 : 0;
}
static int take_long(char **rest, long *out)
{
    char *text = word(rest), *end;
    if (!text)
        return -1;
    *out = strtol(text, &end, 10);
    return *end ? -1 : 0;
}
static int take_index(char **rest, int limit, int *out)
{
    long value;
    if (take_long(rest, &value) || value < 0 || value >= limit)
        return -1;
    *out = (int)value;
    return 0;
}
/* The rest of the line, for texts with blanks. */
static int take_text(char **rest, char *out, size_t size)
{
    char *text = strtok_r(NULL, "\n", rest);
    if (!text || strlen(text) >= size)
        return -1;
    memcpy(out, text, strlen(text) + 1);
    return 0;
}

/* number GPU KEY BASE [step A T | ramp A P | grow A P | spike A P W | cuda | error CODE FROM]... */
static int read_number(char **rest)
{
    static const struct {
        const char *name;
        int kind, arguments;
    } terms[] = {{"step", SIM_STEP, 2}, {"ramp", SIM_RAMP, 2}, {"grow", SIM_GROW, 2}, {"spike", SIM_SPIKE, 3}, {"cuda", SIM_CUDA, 0}};
    int gpu, key;
    char *name;
    if (take_index(rest, machine.gpus, &gpu) || !(name = word(rest)) || (key = position(name, number_names, SIM_NUMBERS)) < 0)
        return -1;
    struct sim_value *value = &machine.gpu[gpu].number[key];
    memset(value, 0, sizeof *value);
    if (take_double(rest, &value->base))
        return -1;
    while ((name = word(rest))) {
        double argument[3] = {0, 0, 0};
        if (!strcmp(name, "error")) {
            long code;
            if (take_long(rest, &code) || take_double(rest, &value->error_from))
                return -1;
            value->error = (int)code;
            continue;
        }
        size_t which = 0, count = sizeof terms / sizeof *terms;
        while (which < count && strcmp(name, terms[which].name))
            which++;
        if (which == count || value->terms == SIM_TERMS)
            return -1;
        for (int i = 0; i < terms[which].arguments; i++)
            if (take_double(rest, &argument[i]))
                return -1;
        struct sim_term *term = &value->term[value->terms++];
        term->kind = terms[which].kind;
        term->amount = argument[0];
        term->period = argument[1];
        term->width = argument[2];
    }
    return 0;
}

static int read_text(char **rest)
{
    int gpu, key;
    char *name;
    if (take_index(rest, machine.gpus, &gpu) || !(name = word(rest)) || (key = position(name, text_names, SIM_TEXTS)) < 0)
        return -1;
    return take_text(rest, machine.gpu[gpu].text[key], SIM_TEXT);
}

static int read_system(char **rest)
{
    char *name = word(rest);
    int key = name ? position(name, system_names, SIM_SYSTEMS) : -1;
    return key < 0 ? -1 : take_text(rest, machine.system[key], SIM_TEXT);
}

/* process GPU PID BYTES GRAPHICS */
static int read_process(char **rest)
{
    int gpu;
    long pid, graphics;
    double bytes;
    if (take_index(rest, machine.gpus, &gpu) || take_long(rest, &pid) || take_double(rest, &bytes) || take_long(rest, &graphics))
        return -1;
    struct sim_gpu *owner = &machine.gpu[gpu];
    if (owner->processes == SIM_PROCESSES)
        return -1;
    owner->process[owner->processes++] = (struct sim_process){(unsigned)pid, (uint64_t)bytes, (int)graphics};
    return 0;
}

/* link GPU LINK DOWN REMOTE CRC REPLAY RECOVERY */
static int read_link(char **rest)
{
    int gpu, link;
    long down, remote;
    double crc, replay, recovery;
    if (take_index(rest, machine.gpus, &gpu) || take_index(rest, SIM_LINKS, &link) || take_long(rest, &down) ||
        take_long(rest, &remote) || take_double(rest, &crc) || take_double(rest, &replay) || take_double(rest, &recovery))
        return -1;
    machine.gpu[gpu].link[link] =
        (struct sim_link){(int)down, (int)remote, (uint64_t)crc, (uint64_t)replay, (uint64_t)recovery};
    return 0;
}

/* mig GPU GPU_INSTANCE COMPUTE_INSTANCE TOTAL USED UUID */
static int read_mig(char **rest)
{
    int gpu;
    long gpu_instance, compute_instance;
    double total, used;
    if (take_index(rest, machine.gpus, &gpu) || take_long(rest, &gpu_instance) || take_long(rest, &compute_instance) ||
        take_double(rest, &total) || take_double(rest, &used))
        return -1;
    struct sim_gpu *owner = &machine.gpu[gpu];
    if (owner->migs == SIM_MIGS)
        return -1;
    struct sim_mig *mig = &owner->mig[owner->migs++];
    mig->gpu_instance = (unsigned)gpu_instance;
    mig->compute_instance = (unsigned)compute_instance;
    mig->bytes_total = (uint64_t)total;
    mig->bytes_used = (uint64_t)used;
    return take_text(rest, mig->uuid, SIM_TEXT);
}

/* pair A B TOPOLOGY READ WRITE NVLINK ATOMICS PCI */
static int read_pair(char **rest)
{
    int a, b;
    long topology, status;
    if (take_index(rest, machine.gpus, &a) || take_index(rest, machine.gpus, &b) || take_long(rest, &topology))
        return -1;
    struct sim_pair *pair = &machine.pair[a][b];
    pair->topology = (int)topology;
    for (int i = 0; i < 5; i++) {
        if (take_long(rest, &status))
            return -1;
        pair->p2p[i] = (int)status;
    }
    machine.pair[b][a] = *pair;
    return 0;
}

/* fault CALL GPU RANK FROM AT ERROR CRASH DELAY BLOCK */
static int read_fault(char **rest)
{
    char *call = word(rest);
    long gpu, rank, error, crash;
    struct sim_fault fault = {.seen = 0};
    if (!call || strlen(call) >= sizeof fault.call || take_long(rest, &gpu) || take_long(rest, &rank) ||
        take_double(rest, &fault.from) || take_long(rest, &fault.at) || take_long(rest, &error) || take_long(rest, &crash) ||
        take_double(rest, &fault.delay_s) || take_double(rest, &fault.block_s))
        return -1;
    strcpy(fault.call, call);
    fault.gpu = (int)gpu;
    fault.rank = (int)rank;
    fault.error = (int)error;
    fault.crash = (int)crash;
    struct sim_fault *more = realloc(machine.fault, (size_t)(machine.faults + 1) * sizeof *more);
    if (!more)
        return -1;
    machine.fault = more;
    machine.fault[machine.faults++] = fault;
    return 0;
}

/* rank RANK VERSION ABSENT DELAY FAIL_AT FAIL_CODE FLIP_AT FLIP_ELEMENT FLIP_BIT */
static int read_rank(char **rest)
{
    int rank;
    long version, absent, code, bit, element;
    if (take_index(rest, SIM_RANKS, &rank))
        return -1;
    struct sim_nccl *nccl = &machine.nccl[rank];
    if (take_long(rest, &version) || take_long(rest, &absent) || take_double(rest, &nccl->delay_s) ||
        take_long(rest, &nccl->fail_at) || take_long(rest, &code) || take_long(rest, &nccl->flip_at) ||
        take_long(rest, &element) || take_long(rest, &bit))
        return -1;
    nccl->version = (int)version;
    nccl->absent = (int)absent;
    nccl->fail_code = (int)code;
    nccl->flip_element = (size_t)element;
    nccl->flip_bit = (int)bit;
    return 0;
}

/* between A B DELAY: what the two ranks send to each other is late */
static int read_between(char **rest)
{
    int a, b;
    double delay;
    if (take_index(rest, SIM_RANKS, &a) || take_index(rest, SIM_RANKS, &b) || take_double(rest, &delay))
        return -1;
    machine.nccl[a].delay_to_s[b] = machine.nccl[b].delay_to_s[a] = delay;
    return 0;
}

/* lost GPU SECONDS */
static int read_lost(char **rest)
{
    int gpu;
    return take_index(rest, machine.gpus, &gpu) ? -1 : take_double(rest, &machine.gpu[gpu].lost_at);
}

/* follow GPU: the list of processes also holds those that run simulated CUDA */
static int read_follow(char **rest)
{
    int gpu;
    if (take_index(rest, machine.gpus, &gpu))
        return -1;
    machine.gpu[gpu].cuda_processes = 1;
    return 0;
}

static int read_gpus(char **rest)
{
    long count;
    if (take_long(rest, &count) || count < 0 || count > SIM_GPUS)
        return -1;
    machine.gpus = (int)count;
    for (int i = 0; i < machine.gpus; i++) {
        machine.gpu[i].index = i;
        machine.gpu[i].lost_at = INFINITY;
    }
    return 0;
}

static const struct {
    const char *name;
    int (*read)(char **rest);
} statements[] = {
    {"gpus", read_gpus},       {"system", read_system}, {"number", read_number}, {"text", read_text},
    {"process", read_process}, {"follow", read_follow}, {"link", read_link},     {"mig", read_mig},
    {"pair", read_pair},       {"fault", read_fault},   {"rank", read_rank},     {"between", read_between},
    {"lost", read_lost},
};

static int read_plan(const char *path)
{
    char line[4096], *rest;
    int at = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "chainerdoctor simulation: cannot read the plan %s: %s\n", path, strerror(errno));
        return -1;
    }
    while (fgets(line, sizeof line, file)) {
        at++;
        char *name = strtok_r(line, " \n", &rest);
        if (!name || *name == '#')
            continue;
        size_t which = 0, count = sizeof statements / sizeof *statements;
        while (which < count && strcmp(name, statements[which].name))
            which++;
        if (which == count || statements[which].read(&rest)) {
            fprintf(stderr, "chainerdoctor simulation: %s:%d is no statement of a plan (%s); plans are written by chainerdoctor.simulate\n",
                    path, at, name);
            fclose(file);
            return -1;
        }
    }
    fclose(file);
    return 0;
}

static void load(void)
{
    const char *path = getenv("CHAINERDOCTOR_SIM_PLAN"), *start = getenv("CHAINERDOCTOR_SIM_T0");
    start_s = start ? strtod(start, NULL) : clock_s();
    if (!path) {
        fprintf(stderr, "chainerdoctor simulation: CHAINERDOCTOR_SIM_PLAN is not set; start programs with chainerdoctor.simulate.environment\n");
        return;
    }
    loaded = read_plan(path) == 0;
}

const struct scenario *sim_scenario(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return loaded ? &machine : NULL;
}

double sim_now_s(void)
{
    return clock_s() - start_s;
}

int sim_lost(const struct sim_gpu *gpu)
{
    return isfinite(gpu->lost_at) && sim_now_s() >= gpu->lost_at;
}

static double term_now(const struct sim_term *term, double now, const struct sim_gpu *gpu)
{
    switch (term->kind) {
    case SIM_STEP:
        return now >= term->period ? term->amount : 0;
    case SIM_RAMP: /* a saw tooth: rises to amount, falls to 0, again */
        return now < 0 ? 0 : term->amount * (now / term->period - floor(now / term->period));
    case SIM_GROW: /* rises to amount and stays */
        return now >= term->period ? term->amount : now < 0 ? 0 : term->amount * now / term->period;
    case SIM_SPIKE:
        return fmod(now < 0 ? 0 : now, term->period) < term->width ? term->amount : 0;
    case SIM_CUDA: {
        struct sim_board *board = sim_board(gpu->index);
        return board ? (double)sim_board_bytes(board) : 0;
    }
    }
    return 0;
}

int sim_value(const struct sim_gpu *gpu, enum sim_number key, uint64_t *out)
{
    const struct sim_value *value = &gpu->number[key];
    double sum = value->base, now = value->terms || value->error ? sim_now_s() : 0;
    if (sim_lost(gpu))
        return GPU_IS_LOST;
    if (value->error && now >= value->error_from)
        return value->error;
    for (int i = 0; i < value->terms; i++)
        sum += term_now(&value->term[i], now, gpu);
    *out = sum < 0 ? 0 : (uint64_t)sum;
    return 0;
}

uint64_t sim_value_of_others(const struct sim_gpu *gpu, enum sim_number key)
{
    const struct sim_value *value = &gpu->number[key];
    double sum = value->base, now = sim_now_s();
    for (int i = 0; i < value->terms; i++)
        if (value->term[i].kind != SIM_CUDA)
            sum += term_now(&value->term[i], now, gpu);
    return sum < 0 ? 0 : (uint64_t)sum;
}

static void sleep_s(double seconds)
{
    if (!isfinite(seconds))
        for (;;)
            pause();
    struct timespec left = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

/* A slow driver call keeps its CPU: short delays are spun, as sleeping is never shorter than some 50 us. */
static void spend_s(double seconds)
{
    double end = clock_s() + seconds;
    if (seconds > 0.005) {
        sleep_s(seconds);
        return;
    }
    while (clock_s() < end)
        ;
}

static int matches(const char *pattern, const char *call)
{
    size_t length = strlen(pattern);
    if (length && pattern[length - 1] == '*')
        return !strncmp(pattern, call, length - 1);
    return !strcmp(pattern, call);
}

int sim_fault(const char *call, int gpu, int rank)
{
    const struct scenario *here = sim_scenario();
    if (!here || !here->faults)
        return 0;
    int code = 0;
    for (int i = 0; i < here->faults; i++) {
        struct sim_fault *fault = &machine.fault[i];
        if ((fault->gpu >= 0 && fault->gpu != gpu) || (fault->rank >= 0 && fault->rank != rank) || !matches(fault->call, call))
            continue;
        if (sim_now_s() < fault->from)
            continue;
        long seen = __atomic_add_fetch(&fault->seen, 1, __ATOMIC_RELAXED);
        if (fault->at && fault->at != seen)
            continue;
        if (fault->delay_s > 0)
            spend_s(fault->delay_s);
        if (fault->block_s > 0)
            sleep_s(fault->block_s);
        if (fault->crash)
            raise(SIGSEGV);
        if (fault->error && !code)
            code = fault->error;
    }
    return code;
}
