// Just enough of CUDA for g++: the threads of a block run one after another, as coroutines that hand
// over at __syncthreads, and blocks run in order. So the kernels' own source is tested without a GPU.
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
static int atomicAdd(int *at, int more) { return (*at += more) - more; }

// A coroutine for each thread, on a stack of its own.
struct Thread {
    ucontext_t place;
    bool begun, finished;
};
static ucontext_t scheduler;
static std::vector<Thread> threads;

static void __syncthreads() {
    int thread = threadIdx.x;
    swapcontext(&threads[thread].place, &scheduler);
    threadIdx.x = thread;
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

typedef long long Word;
typedef void (*Kernel)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
static Kernel kernel;
static Word argument[12];

static void body() {
    Word *a = argument;
    kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    threads[threadIdx.x].finished = true;
}

static const size_t STACK = 1 << 15;
static std::vector<char> stacks;

static void resume(int thread) {
    ucontext_t &place = threads[thread].place;
    threadIdx.x = thread;
    if (!threads[thread].begun) {
        threads[thread].begun = true;
        getcontext(&place);
        place.uc_stack.ss_sp = stacks.data() + STACK * thread;
        place.uc_stack.ss_size = STACK;
        place.uc_link = &scheduler;
        makecontext(&place, body, 0);
    }
    swapcontext(&scheduler, &place);
}

// Every parameter of a kernel is a pointer or a 64-bit integer, and surplus ones do no harm.
extern "C" void launch(Kernel function, int blocks, int block_size, const Word *arguments, int count) {
    kernel = function;
    for (int i = 0; i < count; i++) argument[i] = arguments[i];
    if (stacks.size() < STACK * block_size) stacks.resize(STACK * block_size);
    blockDim.x = block_size, gridDim.x = blocks;
    for (int b = 0; b < blocks; b++) {
        blockIdx.x = b;
        threads.assign(block_size, Thread{});
        for (int left = block_size; left;) {
            left = 0;
            for (int t = 0; t < block_size; t++) {
                if (!threads[t].finished) resume(t), left += !threads[t].finished;
            }
        }
    }
}
