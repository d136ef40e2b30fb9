/* Simulated NVRTC: the system's C++ compiler makes a shared object of CUDA C; the "cubin" names that object.
 *
 * Objects are kept in CHAINERDOCTOR_SIM_KERNELS under a hash of source and options, for later runs and for other ranks. Of
 * several processes that want the same kernel one compiles, the others wait for it.
 */
#define _GNU_SOURCE
#include "cuda.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NVRTC_OK, NVRTC_OUT_OF_MEMORY, NVRTC_INVALID_INPUT = 3, NVRTC_COMPILATION = 6, NVRTC_INTERNAL = 11 };
enum { MOST_NAMES = 512, MOST_ARGUMENTS = 64 };

struct program {
    char *source, *log;
    char object[1024];
    int names;
    char *name[MOST_NAMES], *lowered[MOST_NAMES];
};

SIM_EXPORT int nvrtcVersion(int *major, int *minor)
{
    if (!sim_scenario())
        return NVRTC_INTERNAL;
    int version = atoi(sim_scenario()->system[SIM_cuda_runtime_version]);
    *major = version / 1000;
    *minor = version % 1000 / 10;
    return NVRTC_OK;
}
SIM_EXPORT const char *nvrtcGetErrorString(int code)
{
    return code == NVRTC_OK ? "NVRTC_SUCCESS" : code == NVRTC_COMPILATION ? "NVRTC_ERROR_COMPILATION" : code == NVRTC_OUT_OF_MEMORY ? "NVRTC_ERROR_OUT_OF_MEMORY" : code == NVRTC_INVALID_INPUT ? "NVRTC_ERROR_INVALID_INPUT" : "NVRTC_ERROR_INTERNAL_ERROR";
}
SIM_EXPORT int nvrtcCreateProgram(struct program **out, const char *source, const char *name, int headers, const char *const *header, const char *const *include)
{
    (void)name;
    (void)header;
    (void)include;
    if (headers) {
        cuda_refuse("NVRTC with headers from memory (CuPy's jitify=True)");
        return NVRTC_INVALID_INPUT;
    }
    struct program *program = calloc(1, sizeof *program);
    if (program && (program->source = strdup(source)) && (program->log = strdup(""))) {
        *out = program;
        return NVRTC_OK;
    }
    return NVRTC_OUT_OF_MEMORY;
}
SIM_EXPORT int nvrtcDestroyProgram(struct program **program)
{
    for (int i = 0; i < (*program)->names; i++) {
        free((*program)->name[i]);
        free((*program)->lowered[i]);
    }
    free((*program)->source);
    free((*program)->log);
    free(*program);
    *program = NULL;
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcAddNameExpression(struct program *program, const char *expression)
{
    char lowered[64];
    if (program->names == MOST_NAMES)
        return NVRTC_INVALID_INPUT;
    snprintf(lowered, sizeof lowered, "sim_expression_%d", program->names);
    program->name[program->names] = strdup(expression);
    program->lowered[program->names] = strdup(lowered);
    program->names++;
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcGetLoweredName(struct program *program, const char *expression, const char **out)
{
    for (int i = 0; i < program->names; i++)
        if (!strcmp(program->name[i], expression)) {
            *out = program->lowered[i];
            return NVRTC_OK;
        }
    return NVRTC_INVALID_INPUT;
}

/* --- the name under which an object is kept */
struct hash {
    uint64_t a, b;
};
static void feed(struct hash *hash, const char *text)
{
    for (; *text; text++) { /* FNV-1a twice, from two starts */
        hash->a = (hash->a ^ (unsigned char)*text) * 1099511628211ull;
        hash->b = (hash->b ^ (unsigned char)*text) * 1099511628211ull + 1;
    }
    hash->a ^= 0xff; /* an end, so that "ab","c" is not "a","bc" */
    hash->b ^= 0xff;
}
/* Headers of another CuPy may lie under the same path. */
static void feed_headers(struct hash *hash, const char *folder)
{
    struct stat info;
    char path[2048], text[64];
    snprintf(path, sizeof path, "%s/cupy/carray.cuh", folder);
    if (stat(path, &info))
        return;
    snprintf(text, sizeof text, "%lld %lld", (long long)info.st_size, (long long)info.st_mtime);
    feed(hash, text);
}
static int passes(const char *option)
{
    return !strncmp(option, "-I", 2) || !strncmp(option, "-D", 2);
}

/* --- the source that the compiler gets */

/* CuPy's reduction kernel: _block_stride outputs for a block of threads, several threads for each output if it is small.
 * It works with any stride, so the number of threads for an output is chosen anew for a CPU (device/reduce.h). */
static const char reduction_head[] = "const int _block_stride) {", reduction_start[] = "unsigned int _tid = threadIdx.x;";
static int is_reduction(const char *source)
{
    return strstr(source, reduction_head) && strstr(source, reduction_start);
}
static const char *mode(const char *source)
{
    static const char *const waits[] = {"__syncthreads", "__syncwarp", "__shfl", "__ballot", "_sdata", "__any_sync", "__all_sync", "cooperative_groups", "cub::"};
    static const char *const indices[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
    if (is_reduction(source))
        return "SIM_REDUCTION";
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (strstr(source, waits[i]))
            return "SIM_FIBERS";
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++)
        if (strstr(source, indices[i]))
            return "SIM_THREADS";
    return strstr(source, "CUPY_FOR") ? "SIM_STRIDE" : "SIM_THREADS";
}

static void write_reduction(FILE *file, const char *source)
{
    const char *after = strstr(source, reduction_start) + strlen(reduction_start);
    fprintf(file, "%.*s\n  const int sim_stride = sim_reduction_stride(_in_ind.size(), _out_ind.size(), blockDim.x);\n#define _block_stride sim_stride\n%s", (int)(after - source), source, after);
}

/* "extern __shared__ T name[];" is memory whose size the launch gives: a pointer here. */
static void write_source(FILE *file, const char *source)
{
    const char *at = source, *found, *mark = "extern __shared__ ";
    while ((found = strstr(at, mark))) {
        const char *type = found + strlen(mark), *end = strchr(type, ';'), *bracket = strchr(type, '[');
        if (!end || !bracket || bracket > end)
            break;
        const char *last = bracket;
        while (last > type && isspace((unsigned char)last[-1]))
            last--;
        const char *name = last;
        while (name > type && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        fprintf(file, "%.*s%.*s *%.*s = (%.*s *)sim_dynamic_shared", (int)(found - at), at, (int)(name - type), type, (int)(last - name), name, (int)(name - type), type);
        at = end;
    }
    fputs(at, file);
}

/* A launcher for each __global__ function that is not a template. */
static void write_launchers(FILE *file, const char *source)
{
    for (const char *at = source; (at = strstr(at, "__global__")); at += strlen("__global__")) {
        const char *open = strchr(at, '('), *begin = at;
        if (!open)
            continue;
        const char *bounds = strstr(at, "__launch_bounds__");
        if (bounds && bounds < open) { /* its own brackets come first */
            const char *close = strchr(open, ')');
            open = close ? strchr(close, '(') : NULL;
            if (!open)
                continue;
        }
        while (begin > source && begin[-1] != ';' && begin[-1] != '}')
            begin--;
        const char *template_word = strstr(begin, "template");
        if (template_word && template_word < at)
            continue;
        const char *end = open;
        while (end > at && isspace((unsigned char)end[-1]))
            end--;
        const char *name = end;
        while (name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        if (end > name)
            fprintf(file, "SIM_KERNEL(%.*s)\n", (int)(end - name), name);
    }
}

/* Whether an element-wise kernel's index fits 32 bits: CuPy then gives its indexer the argument 1. Index arithmetic of
 * the kernel's author (divisions, mostly) is several times faster in int. */
static int has_short_index(const char *source)
{
    const char *indexer = strstr(source, "> _ind");
    return !strcmp(mode(source), "SIM_STRIDE") && indexer && indexer - source > 2 && !strncmp(indexer - 3, ", 1", 3);
}

static int write_unit(const char *path, const struct program *program)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -1;
    fprintf(file, "#include \"kernel.h\"\n#define SIM_MODE %s\n#line 1 \"kernel.cu\"\n", mode(program->source));
    const char *kernel = strstr(program->source, "extern \"C\" __global__");
    if (kernel && has_short_index(program->source))
        fprintf(file, "%.*s\n#undef CUPY_FOR\n#define CUPY_FOR(i, n) for (int i = 0, sim_end = int(n); i < sim_end; i++)\n%s", (int)(kernel - program->source), program->source, kernel);
    else if (is_reduction(program->source))
        write_reduction(file, program->source);
    else
        write_source(file, program->source);
    fputc('\n', file);
    write_launchers(file, program->source);
    for (int i = 0; i < program->names; i++)
        fprintf(file, "SIM_EXPRESSION(%d, %s)\n", i, program->name[i]);
    return fclose(file);
}

/* --- running the compiler */
static char *read_file(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = fstat(fd, &info) ? NULL : calloc(1, (size_t)info.st_size + 1);
    if (text && read(fd, text, (size_t)info.st_size) < 0)
        *text = 0;
    close(fd);
    return text;
}
static int run_compiler(char **arguments, const char *log)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int error = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) {
        FILE *file = fopen(log, "we");
        if (file) {
            fprintf(file, "cannot run %s: %s\n", arguments[0], strerror(error));
            fclose(file);
        }
        return -1;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static int compile(struct program *program, int options, const char *const *option)
{
    char unit[1100], log[1100], made[1100];
    const char *compiler = getenv("CHAINERDOCTOR_SIM_CXX"), *device = getenv("CHAINERDOCTOR_SIM_DEVICE");
    snprintf(unit, sizeof unit, "%s.%d.cc", program->object, getpid());
    snprintf(log, sizeof log, "%s.%d.log", program->object, getpid());
    snprintf(made, sizeof made, "%s.%d.made", program->object, getpid());
    if (write_unit(unit, program))
        return NVRTC_INTERNAL;
    char kernels[1100], headers[1100], *slash;
    snprintf(kernels, sizeof kernels, "-I%s", program->object);
    if ((slash = strrchr(kernels, '/')))
        *slash = 0; /* the folder of objects, where kernel.h is precompiled */
    snprintf(headers, sizeof headers, "-I%s", device ? device : ".");
    char *arguments[MOST_ARGUMENTS] = {(char *)(compiler ? compiler : "c++"), "-std=gnu++14", "-O2", "-ftree-vectorize", "-w", "-fpermissive", "-fno-math-errno", "-fvisibility=hidden", "-fPIC", "-shared", "-x", "c++", kernels, headers};
    int used = 14;
    for (int i = 0; i < options && used < MOST_ARGUMENTS - 4; i++)
        if (passes(option[i]))
            arguments[used++] = (char *)option[i];
    arguments[used++] = "-o";
    arguments[used++] = made;
    arguments[used++] = unit;
    int code = run_compiler(arguments, log) ? NVRTC_COMPILATION : NVRTC_OK;
    if (code) {
        char *text = read_file(log);
        free(program->log);
        program->log = text ? text : strdup("the compiler said nothing");
        unlink(made);
    } else if (rename(made, program->object))
        code = NVRTC_INTERNAL;
    if (!getenv("CHAINERDOCTOR_SIM_KEEP")) { /* to look at what was compiled */
        unlink(unit);
        unlink(log);
    }
    return code;
}

SIM_EXPORT int nvrtcCompileProgram(struct program *program, int options, const char *const *option)
{
    const char *folder = getenv("CHAINERDOCTOR_SIM_KERNELS");
    struct hash hash = {1469598103934665603ull, 88172645463325252ull};
    char lock[1100];
    int fault = cuda_fault("nvrtcCompileProgram");
    if (fault || !folder) {
        free(program->log);
        program->log = strdup(folder ? "the scenario makes this call fail" : "CHAINERDOCTOR_SIM_KERNELS is not set");
        return NVRTC_INTERNAL;
    }
    feed(&hash, program->source);
    for (int i = 0; i < options; i++)
        if (passes(option[i])) {
            feed(&hash, option[i]);
            if (option[i][1] == 'I')
                feed_headers(&hash, option[i] + 2);
        }
    for (int i = 0; i < program->names; i++)
        feed(&hash, program->name[i]);
    snprintf(program->object, sizeof program->object, "%s/%016llx%016llx.so", folder, (unsigned long long)hash.a, (unsigned long long)hash.b);
    if (!access(program->object, R_OK))
        return NVRTC_OK;
    snprintf(lock, sizeof lock, "%s.lock", program->object);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && flock(fd, LOCK_EX) && errno == EINTR)
        ;
    int code = access(program->object, R_OK) ? compile(program, options, option) : NVRTC_OK;
    if (fd >= 0) {
        unlink(lock); /* whoever still waits on it finds the object, or compiles once more: both are right */
        close(fd);
    }
    return code;
}

static size_t image_size(const struct program *program)
{
    return strlen(CUDA_IMAGE_HEAD) + strlen(program->object) + 1;
}
static void image(const struct program *program, char *out)
{
    strcpy(out, CUDA_IMAGE_HEAD);
    strcat(out, program->object);
}
SIM_EXPORT int nvrtcGetCUBINSize(struct program *program, size_t *out)
{
    *out = image_size(program);
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcGetCUBIN(struct program *program, char *out)
{
    image(program, out);
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcGetPTXSize(struct program *program, size_t *out)
{
    *out = image_size(program);
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcGetPTX(struct program *program, char *out)
{
    image(program, out);
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcGetProgramLogSize(struct program *program, size_t *out)
{
    *out = strlen(program->log) + 1;
    return NVRTC_OK;
}
SIM_EXPORT int nvrtcGetProgramLog(struct program *program, char *out)
{
    strcpy(out, program->log);
    return NVRTC_OK;
}
