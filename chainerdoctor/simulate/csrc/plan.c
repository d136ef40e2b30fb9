/* Reading the plan that chainerdoctor.simulate writes: one statement a line. See scenario.h. */
#define _GNU_SOURCE
#include "scenario.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static struct scenario *plan; /* the one that is being read */

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
    if (take_index(rest, plan->gpus, &gpu) || !(name = word(rest)) || (key = position(name, number_names, SIM_NUMBERS)) < 0)
        return -1;
    struct sim_value *value = &plan->gpu[gpu].number[key];
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
    if (take_index(rest, plan->gpus, &gpu) || !(name = word(rest)) || (key = position(name, text_names, SIM_TEXTS)) < 0)
        return -1;
    return take_text(rest, plan->gpu[gpu].text[key], SIM_TEXT);
}

static int read_system(char **rest)
{
    char *name = word(rest);
    int key = name ? position(name, system_names, SIM_SYSTEMS) : -1;
    return key < 0 ? -1 : take_text(rest, plan->system[key], SIM_TEXT);
}

/* process GPU PID BYTES GRAPHICS */
static int read_process(char **rest)
{
    int gpu;
    long pid, graphics;
    double bytes;
    if (take_index(rest, plan->gpus, &gpu) || take_long(rest, &pid) || take_double(rest, &bytes) || take_long(rest, &graphics))
        return -1;
    struct sim_gpu *owner = &plan->gpu[gpu];
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
    if (take_index(rest, plan->gpus, &gpu) || take_index(rest, SIM_LINKS, &link) || take_long(rest, &down) ||
        take_long(rest, &remote) || take_double(rest, &crc) || take_double(rest, &replay) || take_double(rest, &recovery))
        return -1;
    plan->gpu[gpu].link[link] =
        (struct sim_link){(int)down, (int)remote, (uint64_t)crc, (uint64_t)replay, (uint64_t)recovery};
    return 0;
}

/* mig GPU GPU_INSTANCE COMPUTE_INSTANCE TOTAL USED UUID */
static int read_mig(char **rest)
{
    int gpu;
    long gpu_instance, compute_instance;
    double total, used;
    if (take_index(rest, plan->gpus, &gpu) || take_long(rest, &gpu_instance) || take_long(rest, &compute_instance) ||
        take_double(rest, &total) || take_double(rest, &used))
        return -1;
    struct sim_gpu *owner = &plan->gpu[gpu];
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
    if (take_index(rest, plan->gpus, &a) || take_index(rest, plan->gpus, &b) || take_long(rest, &topology))
        return -1;
    struct sim_pair *pair = &plan->pair[a][b];
    pair->topology = (int)topology;
    for (int i = 0; i < 5; i++) {
        if (take_long(rest, &status))
            return -1;
        pair->p2p[i] = (int)status;
    }
    plan->pair[b][a] = *pair;
    return 0;
}

/* fault CALL GPU RANK FROM AT ERROR CRASH DELAY BLOCK FLIP */
static int read_fault(char **rest)
{
    char *call = word(rest);
    long gpu, rank, error, crash, flip;
    struct sim_fault fault = {.seen = 0};
    if (!call || strlen(call) >= sizeof fault.call || take_long(rest, &gpu) || take_long(rest, &rank) ||
        take_double(rest, &fault.from) || take_long(rest, &fault.at) || take_long(rest, &error) || take_long(rest, &crash) ||
        take_double(rest, &fault.delay_s) || take_double(rest, &fault.block_s) || take_long(rest, &flip))
        return -1;
    strcpy(fault.call, call);
    fault.gpu = (int)gpu;
    fault.rank = (int)rank;
    fault.error = (int)error;
    fault.crash = (int)crash;
    fault.flip = (int)flip;
    struct sim_fault *more = realloc(plan->fault, (size_t)(plan->faults + 1) * sizeof *more);
    if (!more)
        return -1;
    plan->fault = more;
    plan->fault[plan->faults++] = fault;
    return 0;
}

/* rank RANK VERSION ABSENT DELAY FAIL_AT FAIL_CODE FLIP_AT FLIP_ELEMENT FLIP_BIT */
static int read_rank(char **rest)
{
    int rank;
    long version, absent, code, bit, element;
    if (take_index(rest, SIM_RANKS, &rank))
        return -1;
    struct sim_nccl *nccl = &plan->nccl[rank];
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
    plan->nccl[a].delay_to_s[b] = plan->nccl[b].delay_to_s[a] = delay;
    return 0;
}

/* lost GPU SECONDS */
static int read_lost(char **rest)
{
    int gpu;
    return take_index(rest, plan->gpus, &gpu) ? -1 : take_double(rest, &plan->gpu[gpu].lost_at);
}

/* follow GPU: the list of processes also holds those that run simulated CUDA */
static int read_follow(char **rest)
{
    int gpu;
    if (take_index(rest, plan->gpus, &gpu))
        return -1;
    plan->gpu[gpu].cuda_processes = 1;
    return 0;
}

static int read_gpus(char **rest)
{
    long count;
    if (take_long(rest, &count) || count < 0 || count > SIM_GPUS)
        return -1;
    plan->gpus = (int)count;
    for (int i = 0; i < plan->gpus; i++) {
        plan->gpu[i].index = i;
        plan->gpu[i].lost_at = INFINITY;
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

int sim_read_plan(const char *path, struct scenario *into)
{
    plan = into;
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
