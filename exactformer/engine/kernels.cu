// One text, of any shape, to one value, on a GPU.
//
// The idea. A ROUND makes the text shorter by a constant factor whatever its shape, and leaves a text
// of the same language; a few rounds leave a single value. Every thread takes a short CHUNK:
//
//   reduce    shift-reduces all spans that lie wholly inside the chunk. What is left of a chunk is
//             always  a ) a ) ... a ) a ( s ( s ... ( s : closing parentheses with the tokens before
//             them, then opening ones, each with the automaton's state after what follows it.
//   match     pairs the parentheses that are left, between chunks. The closing ones of one chunk pair
//             with consecutive opening ones of another: a SEGMENT of nested spans. There are fewer
//             than two segments for each chunk, because each uses up one side of a chunk.
//   contract  In a segment every span but the innermost holds exactly one unfinished span, the next
//             one. So it turns that one's value into its own: a table from values to values. The
//             tables of a segment are composed into one MAP, kept with the innermost span's `)`, and
//             only the innermost span is written to the next text.
//
// Each is in a file of its own; tables.h holds what is read off the weights, chunks.h what a round
// knows of its chunks, and words.h reads texts whose tokens are not single bytes.
//
// The FIRST ROUND, which reads the text, does more at once (tiles.h, units.h). A block reduces a whole
// TILE: what its chunks leave is reduced again, in shared memory, by fewer and fewer of its threads. A
// few UNITS are left of a tile, each of the form above, and they are matched as chunks are later. A
// segment between units may be long, so that all threads of a block compose its map together.
//
// A comb is one long chain of such maps, a balanced tree is mostly reduced, and nothing asks which.
//
// Malformed text is never given a value: the last row of the table but one is a state that nothing
// leads out of, its value is the token BAD, and BAD leads every state there. Parentheses that do not
// pair up set the error in the control block.
//
// Glossary
//   state    the number of a row of the table: what was read of a span.
//   table    table[state * WIDTH + token] is the next state; with CLOSE for the token, the token of
//            the span's value, or BAD.
//   item     32 bits of a text after the first round: a token, OPENED | state, or MAPPED | map.
//   entry    what a chunk's stack and its rest hold: an item without OPENED, or a state.
//   rest     entries that a chunk or a unit did not reduce.
//   low      the least depth inside a chunk; with minima over FAN, FAN*FAN ... chunks, a tree.
//   spine    a kernel of one block that adds up what the blocks counted.
//   control  error, maps in use, result, brackets seen, entries and units of the first round, then the
//            length of the text of each round.
//
// The threads of a warp run in step, so that what one does alone costs all of them: searches, closing
// parentheses and values of a map are each gone through by all threads at the same time.
//
// The host defines, when it compiles: OPEN, CLOSE, FIRST_VALUE, TOKENS, VALUES, STATES, HOLES, START,
// CELL (unsigned type of a table entry), PART (one with a bit more), TABLE_BYTES, TABLE_SHARED, TEAM
// (threads that take a tile), FIRST_CHUNK, LEVEL, CHUNK, FAN, and SPINE (threads of a spine).

#ifndef EMULATED  // tests run this very source without a GPU
extern __shared__ uint4 shared_memory[];
#endif

typedef unsigned char Byte;
typedef unsigned int Item;
typedef CELL Cell;
typedef PART Part;

enum { SPACE = TOKENS, BAD = TOKENS + 1, WIDTH = TOKENS + 2, FLOOR = STATES - 1 };
enum { THREADS = FAN * FAN };  // of a block, but for those that take a tile: TEAM
enum { MAP_BYTES = (VALUES + 15) / 16 * 16 };
enum { ERROR, MAPS, RESULT, BRACKETS, USED, UNITS, LENGTH };  // indices in the control block
enum { NO_ROOM = 2 };  // for units or entries: an error that a second attempt with more can avoid
enum { NOTED = 8 };  // segments of a chunk that `match` notes for `contract`; more are searched again
#define OPENED 0x80000000u
#define MAPPED 0x40000000u

__device__ inline int at_least(int a, int b) { return a > b ? a : b; }
__device__ inline int at_most(int a, int b) { return a < b ? a : b; }
__device__ constexpr int min_of(int a, int b) { return a < b ? a : b; }
__device__ constexpr int ceil_div(int whole, int size) { return (whole + size - 1) / size; }

#include "tables.h"
#include "sums.h"
#include "chunks.h"
#include "reduce.h"
#include "tiles.h"
#include "words.h"
#include "match.h"
#include "units.h"
#include "contract.h"

// Round r reads its length from control[LENGTH + r] and writes that of the next. A text that `finish`
// can take is left to it: then this round has nothing to do, and so have all that follow.

__device__ inline int chunks_of(const int *control, long long r) {
    int length = control[ERROR] ? 0 : control[LENGTH + r];
    return r == 0 ? (control[ERROR] ? 0 : control[UNITS])
                  : length <= THREADS * CHUNK ? 0 : ceil_div(length, CHUNK);
}

// What a block needs to reduce tiles, one after another, in shared memory; then come tables.
struct Bench {
    enum { STEP = Column<Cell, TEAM>::STEP };
    Part *parts;
    Cell *stacks;
    Byte *spare;

    __device__ Bench(void *memory)
        : parts((Part *)memory), stacks((Cell *)(parts + ceil_div(TEAM * PITCH, 16) * 16)),
          spare((Byte *)(stacks + ceil_div((FIRST_CHUNK + 1) * STEP, 16) * 16)) {}
    __device__ Chunk chunk(const Tables &tables) const {
        return Chunk(tables.next, 0, stacks + Column<Cell, TEAM>::of(threadIdx.x));
    }
};

extern "C" __global__ void __launch_bounds__(TEAM, 1024 / TEAM)
    reduce_tiles(const Byte *text, long long length, int *control, int *memory,
                 const uint4 *memory_of_tables, const Byte *tokens, Cell *rests, long long room) {
    Bench bench(shared_memory);
    for (int i = threadIdx.x; i < 256; i += TEAM) bench.spare[i] = tokens[i];
    Tables tables(memory_of_tables, bench.spare + 256);
    if (blockIdx.x == 0 && threadIdx.x == 0) control[LENGTH] = (int)length;
    Tiles tiles(memory, ceil_div((int)length, TILE));
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        __syncthreads();
        Chunk chunk = bench.chunk(tables);
        size_t start = (size_t)tile * TILE + threadIdx.x * FIRST_CHUNK;
        reduce_bytes_of(chunk, start, text, (int)length, bench.spare);
        finish_tile(chunk, bench.stacks, bench.parts, tile, tiles, control, rests, room);
    }
}

// The same of words, by a lexer that is brought to shared memory, or by one that is too large.
template <bool SHARED>
__device__ void reduce_words_by(const Byte *text, int length, int *control, int *memory,
                                const uint4 *memory_of_tables, const uint4 *lexer, int nodes,
                                int width, int lexer_bytes, Cell *rests, long long room) {
    Bench bench(shared_memory);
    uint4 *nearby = (uint4 *)bench.spare;
    for (int i = threadIdx.x; SHARED && i < lexer_bytes / 16; i += TEAM) nearby[i] = lexer[i];
    Tables tables(memory_of_tables, bench.spare + (SHARED ? lexer_bytes : 0));
    if (blockIdx.x == 0 && threadIdx.x == 0) control[LENGTH] = length;
    Tiles tiles(memory, ceil_div(length, TILE));
    Lexer words(SHARED ? nearby : lexer, nodes, width);
    int brackets = 0;
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        __syncthreads();
        Chunk chunk = bench.chunk(tables);
        size_t start = (size_t)tile * TILE + threadIdx.x * FIRST_CHUNK;
        brackets |= reduce_words_of(chunk, start, text, length, words);
        finish_tile(chunk, bench.stacks, bench.parts, tile, tiles, control, rests, room);
    }
    if (brackets & ~control[BRACKETS]) atomicOr(control + BRACKETS, brackets);
}

#define LEXED(name, shared)                                                                         \
    extern "C" __global__ void __launch_bounds__(TEAM, 1024 / TEAM)                                 \
        name(const Byte *text, long long length, int *control, int *memory, const uint4 *tables,    \
             const uint4 *lexer, long long nodes, long long width, long long bytes, Cell *rests,    \
             long long room) {                                                                      \
        reduce_words_by<shared>(text, (int)length, control, memory, tables, lexer, (int)nodes,      \
                                (int)width, (int)bytes, rests, room);                               \
    }
LEXED(reduce_words, true)
LEXED(reduce_many_words, false)

extern "C" __global__ void unit_spine(int *control, int *memory, long long bound) {
    if (control[ERROR]) return;
    Tiles tiles(memory, ceil_div(control[LENGTH], TILE));
    __syncthreads();  // all have seen that there was no error so far
    add_up_units<SPINE>(tiles, (int)bound, control);
}

extern "C" __global__ void describe_all(int *control, int *memory, int *memory_of_units,
                                        long long bound) {
    Units units(memory_of_units, (int)bound, chunks_of(control, 0));
    if (blockIdx.x * THREADS >= units.round.chunks) return;
    describe_units(blockIdx.x, Tiles(memory, ceil_div(control[LENGTH], TILE)), units);
}

extern "C" __global__ void count_all(int *control, int *memory, int *memory_of_units,
                                     long long bound, const Cell *rests) {
    Units units(memory_of_units, (int)bound, chunks_of(control, 0));
    if (blockIdx.x * THREADS >= units.round.chunks) return;
    count_units(blockIdx.x, Tiles(memory, ceil_div(control[LENGTH], TILE)), units, rests);
}

extern "C" __global__ void write_all(int *control, int *memory, int *memory_of_units,
                                     long long bound, const Cell *rests, Item *next) {
    Units units(memory_of_units, (int)bound, chunks_of(control, 0));
    if (blockIdx.x * THREADS >= units.round.chunks) return;
    write_units(blockIdx.x, Tiles(memory, ceil_div(control[LENGTH], TILE)), units, rests, next);
}

extern "C" __global__ void __launch_bounds__(TEAM, 1024 / TEAM)
    compose(int *control, int *memory, int *memory_of_units, long long bound, const Cell *rests,
            const uint4 *memory_of_tables, Byte *pool) {
    Units units(memory_of_units, (int)bound, chunks_of(control, 0));
    if (!units.round.chunks) return;
    Byte *room = (Byte *)shared_memory;
    unsigned int *staged = (unsigned int *)(room + 2 * TEAM * MAP_BYTES);
    Tables tables(memory_of_tables, staged + ceil_div(TEAM * STAGED, 4) * 4);
    Tiles tiles(memory, ceil_div(control[LENGTH], TILE));
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        __syncthreads();
        compose_tile(tile, tiles, units, rests, tables, pool, control[MAPS], room, staged);
    }
}

extern "C" __global__ void reduce_items(const Item *text, int *control, long long r, int *memory,
                                        long long bound, const uint4 *memory_of_tables,
                                        const Byte *pool, Item *rests) {
    Round round(memory, (int)bound, chunks_of(control, r));
    if (blockIdx.x * THREADS >= round.chunks) return;
    Item *stack = (Item *)shared_memory;
    Tables tables(memory_of_tables, stack + ceil_div((CHUNK + 1) * Column<Item, THREADS>::STEP, 4) * 4);
    reduce_items_of(blockIdx.x, round, text, control[LENGTH + r], tables.next, pool, stack, rests);
}

extern "C" __global__ void depth_spine(int *control, long long r, int *memory, long long bound) {
    Round round(memory, (int)bound, chunks_of(control, r));
    __syncthreads();  // all have seen that there was no error so far
    if (round.chunks) add_up_depths<SPINE>(round, control);
}

extern "C" __global__ void link(int *control, long long r, int *memory, long long bound) {
    Round round(memory, (int)bound, chunks_of(control, r));
    link_of(blockIdx.x, round);
}

extern "C" __global__ void match(int *control, long long r, int *memory, long long bound) {
    Round round(memory, (int)bound, chunks_of(control, r));
    if (blockIdx.x * THREADS < round.chunks) match_of(blockIdx.x, round);
}

extern "C" __global__ void item_spine(int *control, long long r, int *memory, long long bound,
                                      long long capacity) {
    Round round(memory, (int)bound, chunks_of(control, r));
    __syncthreads();
    if (round.chunks) add_up_items<SPINE>(round, control, control + LENGTH + r + 1, (int)capacity);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    contract(int *control, long long r, int *memory, long long bound, const Item *rests,
             const uint4 *memory_of_tables, Byte *pool, Item *next) {
    Round round(memory, (int)bound, chunks_of(control, r));
    if (blockIdx.x * THREADS >= round.chunks) return;
    Tables tables(memory_of_tables, (Byte *)shared_memory + CHUNK * sizeof(Item) * THREADS);
    contract_of(blockIdx.x, round, rests, tables, pool, next, shared_memory);
}

// All rounds that are left, by one block. Rounds leave their texts in two buffers by turns.
extern "C" __global__ void finish(Item *odd, Item *even, int *control, int *memory,
                                  const uint4 *memory_of_tables, Byte *pool, Item *rests) {
    __shared__ int length;
    if (control[ERROR]) return;
    Item *stack = (Item *)shared_memory;
    Tables tables(memory_of_tables, stack + ceil_div((CHUNK + 1) * Column<Item, THREADS>::STEP, 4) * 4);
    int r = 1;
    while (control[LENGTH + r + 1]) r++;
    Item *text = r % 2 ? odd : even, *other = r % 2 ? even : odd;
    length = at_most(control[LENGTH + r], THREADS * CHUNK);
    __syncthreads();
    for (;;) {
        int before = length;
        Round round(memory, THREADS, ceil_div(before, CHUNK));
        reduce_items_of(0, round, text, before, tables.next, pool, stack, rests);
        __syncthreads();
        if (round.chunks <= 1) break;
        add_up_depths<THREADS>(round, control);
        if (control[ERROR]) return;
        link_of(0, round);
        __syncthreads();
        match_of(0, round);
        __syncthreads();
        add_up_items<THREADS>(round, control, &length, before / 2);
        if (control[ERROR]) return;
        contract_of(0, round, rests, tables, pool, other, stack);
        Item *swapped = text;
        text = other, other = swapped;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        bool single = length > 0 && memory[0] == 1;  // one entry is left, and it is no parenthesis
        bool value = single && rests[0] >= FIRST_VALUE && rests[0] < FIRST_VALUE + VALUES;
        control[RESULT] = value ? (int)rests[0] - FIRST_VALUE : -1;
        if (!value) control[ERROR] = 1;
    }
}
