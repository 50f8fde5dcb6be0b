// Many short texts, each a row that ends with a separator, to one code each, on a GPU.
//
// A thread takes the rows that begin in its PIECE of the text, and reads each to its end, which may
// lie in a later piece: from left to right, by the automaton, with a stack of its own. Its rows are
// numbered by how many begin before its piece:
//
//   count_rows   counts the rows that begin in each piece and in each block's pieces
//   row_spine    adds up the blocks' counts
//   read_rows    reads the rows
//
// Every lexeme is known when the byte after it has been seen, and so is the end of a row. So each byte
// ends at most one lexeme, and a thread does the same for every byte: it looks up the byte's class, the
// token of the lexeme that ended before it (mostly none, which is SPACE), and the next state. It takes
// what no row may have for granted: a parenthesis too many leads to a state that is a state all the
// same, and what was wrong is told by the heights that the stack has had.
//
// What one thread of a warp does alone costs all of them, so there is one loop over bytes for all rows.
//
// Glossary, beside that of kernels.cu
//   lexer    lexer[node + class] is the next node << 8 | token; nodes are counted in rows of CLASSES.
//            Where each byte is a token there is none (NODES is 0), and a byte's class is that token.
//   code     the index of a row's value, or MALFORMED, or LEFT: to be read by others, since it is too
//            long or too deep, or has the token LOST (row_tables.py).
//   table    as in kernels.cu; with END for the token, the code of a row that ends in the state.
//
// The host defines, when it compiles: OPEN, CLOSE, SPACE, END (tokens), WIDTH (of the table), CELL,
// LEFT, MALFORMED, NODES, CLASSES, TABLE_BYTES, TABLE_SHARED, LEXER_BYTES, LEXER_SHARED, PIECE
// (bytes), THREADS (a power of two), HEIGHT (of a stack, likewise), AHEAD, LONGEST (bytes of a row
// after its piece), READY (codes that a block writes together), SPINE.

#ifndef EMULATED  // tests run this very source without a GPU
extern __shared__ uint4 shared_memory[];
#endif

typedef unsigned char Byte;
typedef CELL Cell;

enum { GROUP = 16 };  // bytes that are loaded at once; classes are looked up for AHEAD of them at once
enum { GROUPS = PIECE / GROUP };
enum { TOP = 0, ROOT = NODES ? 0 : SPACE, ENDED = NODES ? CLASSES : END };  // states; nodes

#include "sums.h"

// Sixteen bytes of a text of `left` bytes, with `filler` for those that it does not have.
__device__ inline uint4 load(const Byte *text, long long left, Byte filler) {
    union {
        uint4 whole;
        Byte bytes[GROUP];
    } some;
    if (left >= GROUP) return *(const uint4 *)text;
    for (int i = 0; i < GROUP; i++) some.bytes[i] = i < left ? text[i] : filler;
    return some.whole;
}

extern "C" __global__ void count_rows(const Byte *text, long long length, long long separator,
                                      int *offsets, long long *firsts) {
    __shared__ Byte found[GROUPS * THREADS];
    const int many = GROUPS < 4 ? GROUPS : 4;  // loads on their way at the same time
    long long tile = (long long)blockIdx.x * PIECE * THREADS;
    bool whole = tile + PIECE * THREADS < length;
    text += tile, length -= tile;
    for (int first = threadIdx.x; first < GROUPS * THREADS; first += many * THREADS) {
        uint4 some[many];
        Byte before[many];  // a row begins after each separator, but none after the last byte
#pragma unroll
        for (int k = 0; k < many; k++) {
            int at = (first + k * THREADS) * GROUP;
            if (whole) some[k] = *(const uint4 *)(text + at);
            else some[k] = load(text + at, length - 1 - at, (Byte)~separator);
            before[k] = tile + at == 0 ? separator : at < length ? text[at - 1] : ~separator;
        }
#pragma unroll
        for (int k = 0; k < many; k++) {
            unsigned int words[4] = {some[k].x, some[k].y, some[k].z, some[k].w};
            int count = before[k] == (Byte)separator;
#pragma unroll
            for (int w = 0; w < 4; w++) {
                unsigned int other = words[w] ^ (Byte)separator * 0x01010101u;  // zero for separators
                other |= (other & 0x7f7f7f7fu) + 0x7f7f7f7fu;
                count += __popc(~other & (w < 3 ? 0x80808080u : 0x00808080u));
            }
            found[first + k * THREADS] = count;
        }
    }
    __syncthreads();
    int count = 0, all;
    for (int i = 0; i < GROUPS; i++) count += found[threadIdx.x * GROUPS + i];
    offsets[(size_t)blockIdx.x * THREADS + threadIdx.x] = sum_before<THREADS>(count, &all);
    if (threadIdx.x == 0) firsts[blockIdx.x] = all;
}

// The number of each block's first row, and after them that of all rows.
extern "C" __global__ void row_spine(long long *firsts, long long blocks) {
    long long each = (blocks + SPINE - 1) / SPINE, count = 0, all;
    long long first = threadIdx.x * each, last = first + each < blocks ? first + each : blocks;
    for (long long i = first; i < last; i++) count += firsts[i];
    count = sum_before<SPINE>(count, &all);
    for (long long i = first; i < last; i++) {
        long long here = firsts[i];
        firsts[i] = count;
        count += here;
    }
    if (threadIdx.x == 0) firsts[blocks] = all;
}

// A table where it lies, or brought to shared memory; `room` is what is left of that.
template <int BYTES, bool SHARED>
__device__ inline const void *nearby(const uint4 *table, uint4 *&room) {
    if (!SHARED) return table;
    uint4 *copy = room;
    for (int i = threadIdx.x; i < BYTES / 16; i += THREADS) copy[i] = table[i];
    room += BYTES / 16;
    return copy;
}

// Where a thread's stack lies in each of HEIGHT rows: threads of a warp never share a bank.
__device__ inline int column() {
    const int share = 4 / sizeof(Cell), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (THREADS % (32 * share)) return threadIdx.x;
    return (warp / share * 32 + lane) * share + warp % share;
}

struct Lookups {
    const Byte *classes;
    const unsigned int *lexer;
    const Cell *table;
};

// The rows that begin in the PIECE bytes of a text, of which `left` follow; a row begins with them if
// `at_row`. Their codes go where `to` points, one after the other.
__device__ __forceinline__ void read_piece(const Byte *text, long long left, bool at_row,
                                           Byte separator, const Lookups &look_up, Cell *stack,
                                           Byte *to) {
    int known = left < PIECE + LONGEST ? (int)left : PIECE + LONGEST;
    int own = known < PIECE ? known : PIECE;  // bytes where a row of this thread may begin
    int begun = own;                          // where the row began: that one is not this thread's
    unsigned int node = at_row ? ENDED : ROOT, state = TOP;
    int height = 0, heights = 0;  // of the stack, times THREADS; and the bits of all that it has had
    auto step = [&](int at, unsigned int token) {
        unsigned int next = look_up.table[state * WIDTH + token];
        if (token == CLOSE) height -= THREADS;
        Cell *top = stack + (height & (HEIGHT - 1) * THREADS);
        if (token == CLOSE) next = look_up.table[*top * WIDTH + next];
        if (token == OPEN) *top = (Cell)state, height += THREADS;
        heights |= height;
        state = next;
        if (token == END) {
            if (height | (heights & -HEIGHT * THREADS)) {
                next = height || heights < 0 ? MALFORMED : LEFT;
            }
            if (begun < own) *to++ = (Byte)next;
            begun = at, state = TOP, height = 0, heights = 0;
        }
    };
    for (int at = 0; (begun < own || at < own) && at < PIECE + LONGEST; at += GROUP) {
        uint4 some = load(text + at, known - at, separator);
        unsigned int words[4] = {some.x, some.y, some.z, some.w};
#pragma unroll 1
        for (int i = 0; i < GROUP; i += AHEAD) {
            unsigned int read[AHEAD];  // before the first is used, since they wait for nothing
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                read[k] = look_up.classes[__byte_perm(words[k / 4], 0, 0x4440 + k % 4)];
            }
            words[0] = words[2], words[1] = words[3];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
#if NODES
                unsigned int entry = look_up.lexer[node + read[k]];
                node = entry >> 8;
                step(at + i + k, entry & 255);
#else
                step(at + i + k, node);
                node = read[k];
#endif
            }
        }
    }
    if (begun < own) *to = LEFT;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    read_rows(const Byte *text, long long length, long long separator, const uint4 *classes,
              const uint4 *lexer, const uint4 *table, const int *offsets, const long long *firsts,
              Byte *codes) {
    const int stacks = HEIGHT * THREADS * sizeof(Cell) / 16;
    for (int i = threadIdx.x; i < stacks; i += THREADS) shared_memory[i] = {TOP, TOP, TOP, TOP};
    Cell *stack = (Cell *)shared_memory + column();
    Byte *ready = (Byte *)(shared_memory + stacks);
    uint4 *room = shared_memory + stacks + READY / 16;
    Lookups look_up;
    look_up.classes = (const Byte *)nearby<256, true>(classes, room);
    look_up.lexer = (const unsigned int *)nearby<LEXER_BYTES, LEXER_SHARED>(lexer, room);
    look_up.table = (const Cell *)nearby<TABLE_BYTES, TABLE_SHARED>(table, room);
    __syncthreads();
    size_t piece = (size_t)blockIdx.x * THREADS + threadIdx.x, begin = piece * PIECE;
    long long first = firsts[blockIdx.x], rows = firsts[blockIdx.x + 1] - first;
    if (begin < length) {
        bool at_row = begin == 0 || text[begin - 1] == separator;
        text += begin, length -= begin;
        if (rows <= READY) {  // to be written together
            read_piece(text, length, at_row, separator, look_up, stack, ready + offsets[piece]);
        } else {
            read_piece(text, length, at_row, separator, look_up, stack, codes + first + offsets[piece]);
        }
    }
    __syncthreads();
    if (rows > READY) return;
    for (int i = threadIdx.x; i < rows; i += THREADS) codes[first + i] = ready[i];
}
