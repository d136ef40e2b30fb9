/* The threads of a block as fibers on one host thread, and the barriers between them. */
#pragma once
#include <sys/mman.h>

enum { SIM_MOST_THREADS = 1024, SIM_STACK = 65536 };

static unsigned sim_self, sim_threads; /* the running fiber, and the fibers of the block */
static bool sim_has_fibers;
static unsigned char sim_ended[SIM_MOST_THREADS];

static void sim_set_thread(unsigned index)
{
    threadIdx.x = index % blockDim.x;
    threadIdx.y = index / blockDim.x % blockDim.y;
    threadIdx.z = index / blockDim.x / blockDim.y;
}

static void (*sim_body)(void *);
static void *sim_argument;
static void sim_fiber_main();

/* Changing fibers. ucontext asks the kernel for the signal mask at each change, which costs twenty times the rest. */
#if defined(__x86_64__) && !defined(SIM_UCONTEXT)
static void *sim_stack_pointer[SIM_MOST_THREADS + 1]; /* the last one is the launcher's */
asm(".text\n"
    ".local sim_swap\n"
    ".type sim_swap, @function\n"
    "sim_swap:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size sim_swap, .-sim_swap\n");
extern "C" void sim_swap(void **save, void *load) __attribute__((visibility("hidden")));
static void sim_change(unsigned from, unsigned to)
{
    sim_swap(&sim_stack_pointer[from], sim_stack_pointer[to]);
}
static void sim_prepare(unsigned fiber, char *stack)
{
    /* as sim_swap would have left it: six registers, then the address to return to; the stack is 16-byte aligned there */
    void **top = reinterpret_cast<void **>(stack + SIM_STACK - 64);
    top[6] = reinterpret_cast<void *>(sim_fiber_main);
    sim_stack_pointer[fiber] = top;
}
#else
#include <ucontext.h>
static ucontext_t sim_context[SIM_MOST_THREADS + 1];
static void sim_change(unsigned from, unsigned to)
{
    swapcontext(&sim_context[from], &sim_context[to]);
}
static void sim_prepare(unsigned fiber, char *stack)
{
    getcontext(&sim_context[fiber]);
    sim_context[fiber].uc_stack.ss_sp = stack;
    sim_context[fiber].uc_stack.ss_size = SIM_STACK;
    sim_context[fiber].uc_link = nullptr;
    makecontext(&sim_context[fiber], sim_fiber_main, 0);
}
#endif

static void sim_go(unsigned to)
{
    unsigned from = sim_self;
    sim_self = to;
    sim_set_thread(to);
    sim_change(from, to);
}
/* To the next fiber of first … first + count - 1 that has not ended; stays where it is if there is no other. */
static void sim_yield(unsigned first, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        unsigned next = first + (sim_self - first + i) % count;
        if (!sim_ended[next]) {
            sim_go(next);
            return;
        }
    }
}

/* A barrier opens when all that are alive have come; a thread that ends no longer counts. */
struct sim_barrier {
    unsigned alive, waiting, opened;
    bool come()
    {
        if (++waiting < alive)
            return false;
        open();
        return true;
    }
    void open()
    {
        waiting = 0;
        opened++;
    }
    void leave()
    {
        if (--alive && waiting == alive)
            open();
    }
};
static sim_barrier sim_block_barrier, sim_warp_barrier[SIM_MOST_THREADS / 32];

static unsigned sim_warp_first() { return sim_self / 32 * 32; }
static unsigned sim_warp_size()
{
    unsigned left = sim_threads - sim_warp_first();
    return left < 32 ? left : 32;
}

static void __syncthreads()
{
    if (!sim_has_fibers)
        return;
    unsigned opened = sim_block_barrier.opened;
    if (sim_block_barrier.come())
        return;
    do
        sim_yield(0, sim_threads);
    while (sim_block_barrier.opened == opened);
}
/* All living threads of the warp have to come: masks that leave some out are not told apart. */
static void __syncwarp(unsigned = 0xffffffff)
{
    if (!sim_has_fibers)
        return;
    sim_barrier &barrier = sim_warp_barrier[sim_self / 32];
    unsigned opened = barrier.opened;
    if (barrier.come())
        return;
    do
        sim_yield(sim_warp_first(), sim_warp_size());
    while (barrier.opened == opened);
}

static void sim_fiber_main()
{
    sim_body(sim_argument);
    sim_ended[sim_self] = 1;
    sim_block_barrier.leave();
    sim_warp_barrier[sim_self / 32].leave();
    if (!sim_block_barrier.alive) {
        sim_change(sim_self, SIM_MOST_THREADS);
        __builtin_unreachable();
    }
    sim_yield(0, sim_threads);
    __builtin_unreachable();
}

static void sim_run_block(void (*body)(void *), void *argument, unsigned threads)
{
    static char *stacks;
    if (!stacks) {
        void *memory = mmap(nullptr, size_t(SIM_MOST_THREADS) * SIM_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            abort();
        stacks = static_cast<char *>(memory);
    }
    sim_has_fibers = true;
    sim_threads = threads;
    sim_body = body;
    sim_argument = argument;
    memset(sim_ended, 0, threads);
    sim_block_barrier = {threads, 0, 0};
    for (unsigned first = 0; first < threads; first += 32)
        sim_warp_barrier[first / 32] = {threads - first < 32 ? threads - first : 32, 0, 0};
    for (unsigned i = 0; i < threads; i++)
        sim_prepare(i, stacks + size_t(i) * SIM_STACK);
    sim_self = 0;
    sim_set_thread(0);
    sim_change(SIM_MOST_THREADS, 0);
    sim_has_fibers = false;
}
