/* Simulated NCCL: its log lines. The formats are those of NCCL 2.18 to 2.27 (without 2.26's optional time stamps). */
#define _GNU_SOURCE
#include "nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NONE, VERSION, WARNINGS, INFORMATION };

static int level(void)
{
    const char *set = getenv("NCCL_DEBUG");
    if (!set)
        return NONE;
    if (!strcasecmp(set, "INFO") || !strcasecmp(set, "TRACE"))
        return INFORMATION;
    if (!strcasecmp(set, "WARN"))
        return WARNINGS;
    return strcasecmp(set, "VERSION") ? NONE : VERSION;
}

/* NCCL_DEBUG_FILE: %h stands for the host, %p for the process */
static FILE *open_log(void)
{
    const char *name = getenv("NCCL_DEBUG_FILE");
    char path[1024], host[64] = "";
    size_t used = 0;
    if (!name || level() == VERSION)
        return stdout;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = 0;
    for (; *name && used < sizeof path - 80; name++) {
        if (name[0] == '%' && name[1] == 'h')
            used += (size_t)sprintf(path + used, "%s", host), name++;
        else if (name[0] == '%' && name[1] == 'p')
            used += (size_t)sprintf(path + used, "%d", getpid()), name++;
        else
            path[used++] = *name;
    }
    path[used] = 0;
    FILE *file = fopen(path, "ae");
    return file ? file : stdout;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file(void)
{
    static FILE *file;
    pthread_mutex_lock(&gate);
    if (!file)
        file = open_log();
    pthread_mutex_unlock(&gate);
    return file;
}

static void begin(char *line, size_t size)
{
    char host[64] = "";
    int device = nccl_current_device();
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = 0;
    snprintf(line, size, "%s:%d:%ld [%d]", host, getpid(), (long)syscall(SYS_gettid), device < 0 ? 0 : device);
}

void nccl_warn(const char *file, int line, const char *format, ...)
{
    if (level() < WARNINGS)
        return;
    char head[128], text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *slash = strrchr(file, '/');
    begin(head, sizeof head);
    fprintf(log_file(), "\n%s %s:%d NCCL WARN %s\n", head, slash ? slash + 1 : file, line, text);
    fflush(log_file());
}

static int wanted(enum nccl_subsystem subsystem)
{
    const char *set = getenv("NCCL_DEBUG_SUBSYS"), *name = subsystem == NCCL_LOG_COLL ? "COLL" : "INIT";
    if (!set)
        return subsystem == NCCL_LOG_INIT;
    int inverted = *set == '^';
    int named = strcasestr(set, name) || strcasestr(set, "ALL");
    return named != inverted;
}

void nccl_info(enum nccl_subsystem subsystem, const char *format, ...)
{
    if (level() < INFORMATION || !wanted(subsystem))
        return;
    char head[128], text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    begin(head, sizeof head);
    fprintf(log_file(), "%s NCCL INFO %s\n", head, text);
    fflush(log_file());
}

/* "NCCL version 2.20.5+cuda12.2", once, where rank 0 is: at WARN and VERSION on a line of its own, at INFO as a log line */
void nccl_announce_version(void)
{
    static int said;
    int lvl = level(), code = nccl_version(), big = code >= 10000;
    if (lvl == NONE || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
        return;
    int major = big ? code / 10000 : code / 1000, minor = (big ? code % 10000 : code % 1000) / 100, patch = code % 100;
    int cuda = atoi(sim_scenario()->system[SIM_cuda_runtime_version]);
    if (lvl == INFORMATION)
        nccl_info(NCCL_LOG_INIT, "NCCL version %d.%d.%d+cuda%d.%d", major, minor, patch, cuda / 1000, cuda % 1000 / 10);
    else {
        fprintf(log_file(), "NCCL version %d.%d.%d+cuda%d.%d\n", major, minor, patch, cuda / 1000, cuda % 1000 / 10);
        fflush(log_file());
    }
}
