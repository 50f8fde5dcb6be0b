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
//            long or too deep, or has a lexeme that is no symbol.
//   table    as in kernels.cu; with END for the token, the code of a row that ends in the state.
//
// The host defines, when it compiles: OPEN, CLOSE, SPACE, END (tokens), WIDTH (of the table), CELL, LEFT,
// MALFORMED, NODES, CLASSES, TABLE_BYTES, TABLE_SHARED, LEXER_BYTES, LEXER_SHARED, PIECE (bytes),
// THREADS, HEIGHT (of a stack, a power of two), LONGEST (bytes of a row after its piece), READY
// (codes that a block writes together), SPINE.

#ifndef EMULATED  // tests run this very source without a GPU
extern __shared__ uint4 shared_memory[];
#endif

typedef unsigned char Byte;
typedef CELL Cell;

enum { GROUP = 16, AHEAD = 8 };  // bytes that are loaded at once, and whose classes are looked up at once
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

// How many rows begin in the sixteen bytes from text[at] on: one after each separator but the last byte.
__device__ inline int begin_in(const Byte *text, long long at, long long length, Byte separator) {
    if (at >= length) return 0;
    uint4 some = load(text + at, length - 1 - at, ~separator);
    unsigned int words[4] = {some.x, some.y, some.z, some.w};
    unsigned int before = at == 0 || text[at - 1] == separator, count = before;
#pragma unroll
    for (int w = 0; w < 4; w++) {
        unsigned int same = words[w] ^ separator * 0x01010101u;  // zero for a separator
        same = ~(((same & 0x7f7f7f7fu) + 0x7f7f7f7fu) | same | 0x7f7f7f7fu);
        count += __popc(w < 3 ? same : same & 0x00ffffffu);
    }
    return count;
}

extern "C" __global__ void count_rows(const Byte *text, long long length, long long separator,
                                      int *offsets, long long *firsts) {
    __shared__ Byte found[GROUPS * THREADS];
    long long tile = (long long)blockIdx.x * PIECE * THREADS;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        int group = i * THREADS + threadIdx.x;
        found[group] = begin_in(text, tile + group * GROUP, length, (Byte)separator);
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
template <int BYTES, bool SHARED> __device__ inline const void *nearby(const uint4 *table, uint4 *&room) {
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

extern "C" __global__ void __launch_bounds__(THREADS)
    read_rows(const Byte *text, long long length, long long separator, const uint4 *all_classes,
              const uint4 *whole_lexer, const uint4 *whole_table, const int *offsets,
              const long long *firsts, Byte *codes) {
    const int stack_words = HEIGHT * THREADS * sizeof(Cell) / 16;
    for (int i = threadIdx.x; i < stack_words; i += THREADS) shared_memory[i] = {TOP, TOP, TOP, TOP};
    Cell *stack = (Cell *)shared_memory + column();
    uint4 *room = shared_memory + stack_words;
    Byte *ready = (Byte *)room;
    room += READY / 16;
    const Byte *classes = (const Byte *)nearby<256, true>(all_classes, room);
    const unsigned int *lexer = (const unsigned int *)nearby<LEXER_BYTES, LEXER_SHARED>(whole_lexer, room);
    const Cell *table = (const Cell *)nearby<TABLE_BYTES, TABLE_SHARED>(whole_table, room);
    __syncthreads();
    size_t piece = (size_t)blockIdx.x * THREADS + threadIdx.x;
    long long begin = (long long)piece * PIECE, first = firsts[blockIdx.x];
    int row = offsets[piece];  // counted from the block's first
    codes += first;
    if (begin < length) {
        text += begin;
        int left = length - begin < PIECE + LONGEST ? (int)(length - begin) : PIECE + LONGEST;
        int own = left < PIECE ? left : PIECE;
        unsigned int node = begin == 0 || text[-1] == separator ? ENDED : ROOT, state = TOP;
        int height = 0, heights = 0;  // of the stack, and the bits of all that it has had
        bool reads = false;           // a row of its own
        auto write = [&](unsigned int code) {
            if (row < READY) ready[row] = (Byte)code;
            else codes[row] = (Byte)code;
            row++;
        };
        auto step = [&](int at, unsigned int token) {
            unsigned int next = table[state * WIDTH + token];
            if (token == CLOSE) {
                height--;
                next = table[stack[(height & (HEIGHT - 1)) * THREADS] * WIDTH + next];
            }
            if (token == OPEN) {
                stack[(height & (HEIGHT - 1)) * THREADS] = (Cell)state;
                height++;
            }
            heights |= height;
            state = next;
            if (token == END) {
                if (height || heights < 0) next = MALFORMED;
                else if (heights >= HEIGHT) next = LEFT;
                if (reads) write(next);
                reads = at < own;
                state = TOP, height = 0, heights = 0;
            }
        };
        for (int at = 0; (reads || at < own) && at < PIECE + LONGEST; at += GROUP) {
            uint4 some = load(text + at, left - at, (Byte)separator);
            unsigned int words[4] = {some.x, some.y, some.z, some.w};
#pragma unroll
            for (int i = 0; i < GROUP; i += AHEAD) {
                Byte read[AHEAD];
#pragma unroll
                for (int k = 0; k < AHEAD; k++) {
                    read[k] = classes[words[(i + k) / 4] >> 8 * (k % 4) & 255];
                }
#pragma unroll
                for (int k = 0; k < AHEAD; k++) {
#if NODES
                    unsigned int entry = lexer[node + read[k]];
                    node = entry >> 8;
                    step(at + i + k, entry & 255);
#else
                    step(at + i + k, node);
                    node = read[k];
#endif
                }
            }
        }
        if (reads) write(LEFT);
    }
    __syncthreads();
    int rows = (int)(firsts[blockIdx.x + 1] - first);
    for (int i = threadIdx.x; i < rows && i < READY; i += THREADS) codes[i] = ready[i];
}
