/* What the plan says now. See scenario.h. */
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

static struct scenario machine;
static int loaded;
static double start_s;

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void load(void)
{
    const char *path = getenv("CHAINERDOCTOR_SIM_PLAN"), *start = getenv("CHAINERDOCTOR_SIM_T0");
    start_s = start ? strtod(start, NULL) : clock_s();
    if (!path) {
        fprintf(stderr, "chainerdoctor simulation: CHAINERDOCTOR_SIM_PLAN is not set; start programs with chainerdoctor.simulate.environment\n");
        return;
    }
    loaded = sim_read_plan(path, &machine) == 0;
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

static __thread int flip;

void sim_spoil(void *written, size_t bytes)
{
    if (flip && bytes)
        ((unsigned char *)written)[bytes / 2] ^= 1;
}

int sim_fault(const char *call, int gpu, int rank)
{
    flip = 0;
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
        flip |= fault->flip;
        if (fault->crash)
            raise(SIGSEGV);
        if (fault->error && !code)
            code = fault->error;
    }
    return code;
}
