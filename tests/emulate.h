// Just enough of CUDA for g++: the threads of a block run one after another, as coroutines that hand
// over at __syncthreads, and so do a few blocks, where they wait for each other; more run in order. So
// the kernels' own source is tested without a GPU. Blocks share their shared memory: no kernel may leave
// anything of its own there while it waits for other blocks.
#include <cstddef>
#include <vector>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline

struct Place { int x; };
static Place threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) uint4 { unsigned int x, y, z, w; };
struct alignas(8) uint2 { unsigned int x, y; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
static uint4 shared_memory[1 << 14];

static int __popc(unsigned int bits) { return __builtin_popcount(bits); }
static int __clz(unsigned int bits) { return __builtin_clz(bits); }
static int __ffs(unsigned int bits) { return __builtin_ffs(bits); }
static unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int which) {
    unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned int chosen = 0;
    for (int i = 0; i < 4; i++) chosen |= (bytes >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
    return chosen;
}
static unsigned int __funnelshift_r(unsigned int low, unsigned int high, int shift) {
    return (unsigned int)(((unsigned long long)high << 32 | low) >> shift);
}
static unsigned int __umulhi(unsigned int a, unsigned int b) {
    return (unsigned int)((unsigned long long)a * b >> 32);
}
static void atomicOr(int *at, int bits) { *at |= bits; }
static void atomicAnd(unsigned int *at, unsigned int bits) { *at &= bits; }
static void add_one(int *number) { ++*number; }
static int read_now(const int *number) { return *(volatile const int *)number; }
static int atomicAdd(int *at, int more) { return (*at += more) - more; }

struct Coroutine {
    ucontext_t place;
    bool begun = false, finished = false;

    // Goes on with it, until it hands over to `from`; first with `body`, on this stack.
    void resume(ucontext_t &from, void (*body)(), char *stack, size_t size) {
        if (!begun) {
            begun = true;
            getcontext(&place);
            place.uc_stack.ss_sp = stack, place.uc_stack.ss_size = size, place.uc_link = &from;
            makecontext(&place, body, 0);
        }
        swapcontext(&from, &place);
    }
};
static const size_t STACK = 1 << 15;
struct Block : Coroutine {
    ucontext_t scheduler;
    std::vector<Coroutine> threads;
    std::vector<char> stacks;  // one for each thread, and one to schedule them
};
static Block blocks[16];
static const int TOGETHER = sizeof blocks / sizeof *blocks;
static ucontext_t grid;

static void __syncthreads() {
    int thread = threadIdx.x;
    Block &block = blocks[blockIdx.x % TOGETHER];
    swapcontext(&block.threads[thread].place, &block.scheduler);
    threadIdx.x = thread;
}

// Hands over to the other blocks.
static void pause() {
    int thread = threadIdx.x, block = blockIdx.x;
    swapcontext(&blocks[block % TOGETHER].place, &grid);
    threadIdx.x = thread, blockIdx.x = block;
}

// Every thread of the block takes part.
template <class Number> static Number __shfl_up_sync(unsigned int, Number x, int reach) {
    static Number lanes[1024];
    int thread = threadIdx.x;
    lanes[thread] = x;
    __syncthreads();
    int other = thread % 32 >= reach ? lanes[thread - reach] : x;
    __syncthreads();
    return other;
}

static unsigned int __ballot_sync(unsigned int, bool member) {
    static bool members[1024];
    int thread = threadIdx.x, first = thread / 32 * 32;
    members[thread] = member;
    __syncthreads();
    unsigned int bits = 0;
    for (int t = first; t < first + 32 && t < blockDim.x; t++) bits |= (unsigned int)members[t] << t % 32;
    __syncthreads();
    return bits;
}

typedef long long Word;
typedef void (*Kernel)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
static Kernel kernel;
static Word argument[12];

static void run_thread() {
    Word *a = argument;
    kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    blocks[blockIdx.x % TOGETHER].threads[threadIdx.x].finished = true;
}

static void run_block() {
    Block &block = blocks[blockIdx.x % TOGETHER];
    block.threads.assign(blockDim.x, Coroutine());
    for (int left = blockDim.x; left;) {
        left = 0;
        for (int t = 0; t < blockDim.x; t++) {
            Coroutine &thread = block.threads[t];
            if (thread.finished) continue;
            threadIdx.x = t;
            thread.resume(block.scheduler, run_thread, block.stacks.data() + STACK * t, STACK);
            left += !thread.finished;
        }
    }
    block.finished = true;
}

// Every parameter of a kernel is a pointer or a 64-bit integer, and surplus ones do no harm.
extern "C" void launch(Kernel function, int count, int size, const Word *arguments, int given) {
    kernel = function;
    for (int i = 0; i < given; i++) argument[i] = arguments[i];
    blockDim.x = size, gridDim.x = count;
    for (int first = 0; first < count; first += TOGETHER) {
        int some = count - first < TOGETHER ? count - first : TOGETHER;
        for (int b = 0; b < some; b++) {
            Block &block = blocks[b];
            block.begun = block.finished = false;
            if (block.stacks.size() < STACK * (size + 1)) block.stacks.resize(STACK * (size + 1));
        }
        for (int left = some; left;) {
            left = 0;
            for (int b = 0; b < some; b++) {
                Block &block = blocks[b];
                if (block.finished) continue;
                blockIdx.x = first + b;
                block.resume(grid, run_block, block.stacks.data() + STACK * size, STACK);
                left += !block.finished;
            }
        }
    }
}
