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
// knows of its chunks, and words.h reads texts whose tokens are not single bytes. What the chunks of a
// block leave is JOINED first, in shared memory, by fewer and fewer of its threads (join.h), so that
// of a bushy tree little is left to match.
//
// The FIRST ROUND, which reads the text, takes more at once (tiles.h, units.h): a block a whole TILE.
// One UNIT is left of it, or a few, each of the form above, and they are matched as chunks are later. A
// segment between units may be long, so that all threads of a block compose its map together (chains.h).
//
// A comb is one long chain of such maps, a balanced tree is mostly reduced, and nothing asks which.
//
// SPANS OF ANY LENGTH. Where a span may hold any number of tokens, as in plain notation, chunks shorten
// the RUNS of tokens that they leave, each to a shortest one that does the same: a run does one of
// finitely many things to the states. And where a text needs no parentheses of its own, the first round
// leaves it in a pair of them (WRAPPED).
//
// Malformed text is never given a value: there is a state that nothing leads out of, its value is the
// token BAD, and BAD leads every state there. Parentheses that do not pair up set the error in the
// control block.
//
// Glossary
//   state    what was read of a span: FIRST_STATE + the number of a row of the table.
//   table    table[state * WIDTH + token] is a PAIR: the next state, and the token of what a span
//            becomes that is closed there, or BAD; with CLOSE for the token, that of this state.
//   item     32 bits of a text after the first round: a token, OPENED | state, or MAPPED | map.
//   entry    what a chunk's stack and its rest hold: an item without OPENED, or a state.
//   rest     entries that a chunk or a unit did not reduce.
//   low      the least depth inside a chunk; with minima over FAN, FAN*FAN ... chunks, a tree.
//   control  error, maps that the first round makes, result, brackets seen, units of the first round,
//            length of the text, items that the first round leaves, rounds, tiles that were taken in
//            turn, blocks that have arrived somewhere.
//
// The threads of a warp run in step, so that what one does alone costs all of them: searches, closing
// parentheses and values of a map are each gone through by all threads at the same time. And what runs
// once waits for its instructions to come, so that `pair` and `finish` unroll few loops.
//
// The host defines, when it compiles: OPEN, CLOSE, FIRST_VALUE, TOKENS, VALUES, STATES, HOLES, NUMBERS
// (of maps, where all have one), CELL (unsigned type of a state or token), PAIR (twice as wide),
// TABLE_BYTES, TABLE_SHARED, RUNS (how many, or 0), RUNS_AT (bytes before them), WRAPPED (1 or 0), TEAM
// (threads that take a tile), AT_ONCE (of a processor, at least), FIRST_CHUNK, EDGE, WINDOW_WORDS (of a
// thread), CHUNK, JOINED (spans that a join closes at most), LAST and FAN.

#ifndef EMULATED  // tests run this very source without a GPU
extern __shared__ uint4 shared_memory[];
__device__ inline void pause() {}
// What was written by threads that this one has waited for is seen where a number is read that shows
// this one; a plain __threadfence would order more than that, and take longer.
__device__ inline void add_one(int *number) {
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(number) : "memory");
}
__device__ inline int read_now(const int *number) {
    int found;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(found) : "l"(number) : "memory");
    return found;
}
#endif

typedef unsigned char Byte;
typedef unsigned int Item;
typedef CELL Cell;
typedef PAIR Pair;

enum { SPACE = TOKENS, BAD = TOKENS + 1 };
enum { WIDTH = TOKENS + 2 + (TOKENS % 16 == 14) };  // so that rows do not begin in few banks
enum { FIRST_STATE = WIDTH, FLOOR = FIRST_STATE + STATES - 1 };
enum { THREADS = FAN * FAN };  // of a block, but for those that take a tile: TEAM
enum { MAP_BYTES = (VALUES + 15) / 16 * 16 };
enum { ERROR, MAPS, RESULT, BRACKETS, UNITS, LENGTH, ITEMS, ROUNDS, TAKEN, ARRIVED };  // in `control`
enum { NOTED = 8 };  // segments of a chunk that `match` notes for `contract`; more are searched again
#define OPENED 0x80000000u
#define MAPPED 0x40000000u

__device__ inline int at_least(int a, int b) { return a > b ? a : b; }
__device__ inline int at_most(int a, int b) { return a < b ? a : b; }
__device__ constexpr int min_of(int a, int b) { return a < b ? a : b; }
__device__ constexpr int max_of(int a, int b) { return a > b ? a : b; }
__device__ constexpr int highest_power(int n) { return n < 2 ? n : 2 * highest_power(n / 2); }
__device__ constexpr int ceil_div(int whole, int size) { return (whole + size - 1) / size; }

#include "tables.h"
#include "sums.h"
#include "chunks.h"
#include "reduce.h"
#include "join.h"
#include "items.h"
#include "tiles.h"
#include "words.h"
#include "match.h"
#include "units.h"
#include "chains.h"
#include "contract.h"

// Blocks that wait for each other. All of them must run at the same time: the host starts no more. The
// fewer there are, the less time it takes, so that those that have nothing left to do leave.
struct Grid {
    int *arrived, expected, blocks;

    __device__ Grid(int *arrived_) : arrived(arrived_), expected(0), blocks(gridDim.x) {}
    // From now on there is work for so many: whether this block is one of those that go on. No more
    // than before, and all of them have waited for each other since they did something.
    __device__ bool needs_this(int many) {
        blocks = at_most(blocks, at_least(many, 1));
        return blockIdx.x < blocks;
    }
    __device__ void wait() {
        __syncthreads();
        if (blocks == 1) return;
        expected += blocks;
        if (threadIdx.x == 0) {
            add_one(arrived);
            while (read_now(arrived) < expected) pause();
        }
        __syncthreads();
    }
};

// What blocks of chunks have to do, shared out among those that run.
template <class Use> __device__ void each_block(const Grid &grid, const Round &round, Use use) {
    for (int block = blockIdx.x; block * THREADS < round.chunks; block += grid.blocks) {
        __syncthreads();  // nobody reads what is shared by the last one any more
        use(block);
    }
}

// What a block needs to reduce tiles, one after another, in shared memory; then come tables of tokens
// and the table.
struct Bench {
    enum { STEP = Column<Cell, TEAM>::STEP };
    enum { WORDS = TEAM * WINDOW_WORDS + 1 };  // of the window: where it begins, entries share a word
    static_assert(TEAM * WINDOW_WORDS * 4 >= STEP * sizeof(Cell), "a row below the stacks is read");
    unsigned int *window;
    Cell *stacks;
    Byte *spare;

    __device__ Bench(void *memory)
        : window((unsigned int *)memory),
          stacks((Cell *)(window + ceil_div(WORDS * 33, 32 * 4) * 4)),
          spare((Byte *)(stacks + ceil_div((FIRST_CHUNK + 1) * STEP, 16) * 16)) {}
    __device__ Chunk chunk(const Runs &runs, const Pair *table) const {
        return Chunk(runs, table, 0, stacks, Column<Cell, TEAM>::of(threadIdx.x));
    }
};

// Tiles, taken by blocks in turn: some need much longer than others. `read` has a thread's chunk reduced.
template <class Read>
__device__ void reduce_each_tile(const Bench &bench, const Runs &runs, const Pair *table, Tiles &tiles,
                                 int *control, Cell *rests, Read read) {
    __shared__ int next;
    for (int tile = blockIdx.x; tile < tiles.count; tile = next) {
        int turn = 0;
        __syncthreads();
        if (threadIdx.x == 0) turn = atomicAdd(control + TAKEN, 1);  // comes while the text is read
        Chunk chunk = bench.chunk(runs, table);
        read(chunk, tile * TILE + (int)threadIdx.x * FIRST_CHUNK);
        if (threadIdx.x == 0) next = gridDim.x + turn;
        finish_tile(chunk, bench.window, tile, tiles, rests);
    }
}

extern "C" __global__ void __launch_bounds__(TEAM, AT_ONCE / TEAM)
    reduce_tiles(const Byte *text, long long length, int *control, int *memory, const uint4 *tables,
                 const Byte *tokens, Cell *rests) {
    Bench bench(shared_memory);
    for (int i = threadIdx.x; i < 256; i += TEAM) bench.spare[i] = tokens[i];
    const Pair *table = table_in(nearby(tables, NEXT_BYTES, bench.spare + 256));
    if (blockIdx.x == 0 && threadIdx.x == 0) control[LENGTH] = (int)length;
    Tiles tiles(memory, ceil_div((int)length, TILE));
    reduce_each_tile(bench, tables, table, tiles, control, rests, [&](Chunk &chunk, int start) {
        reduce_bytes_of(chunk, start, text, (int)length, bench.spare);
    });
}

// What neighbours of a tile read of it: see words.h.
extern "C" __global__ void copy_edges(const Byte *text, long long length, Byte *edges) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long tile = (long long)(i / EDGE) * TILE, at = tile + i % EDGE - EDGE / 2;
    if (tile < length && at >= 0 && at < length) edges[i] = text[at];
}

// The same of words, by a lexer that is brought to shared memory, or by one that is too large.
template <class Step, bool SHARED>
__device__ void reduce_words_by(const Byte *text, int length, int *control, int *memory,
                                const uint4 *tables, const uint4 *lexer, int nodes, int width,
                                int lexer_bytes, Cell *rests, const Byte *edges) {
    Bench bench(shared_memory);
    uint4 *copy = (uint4 *)bench.spare;
    const uint4 *often = lexer + Lexer<Step>::SELDOM / 16;
    int bytes = SHARED ? lexer_bytes - Lexer<Step>::SELDOM : 0;
    for (int i = threadIdx.x; i < bytes / 16; i += TEAM) copy[i] = often[i];
    void *behind = bench.spare + bytes;
    const Pair *table = table_in(nearby(tables, NEXT_BYTES, behind));
    if (blockIdx.x == 0 && threadIdx.x == 0) control[LENGTH] = length;
    Tiles tiles(memory, ceil_div(length, TILE));
    Lexer<Step> words(lexer, SHARED ? copy : often, nodes, width);
    int brackets = 0;
    reduce_each_tile(bench, tables, table, tiles, control, rests, [&](Chunk &chunk, int start) {
        brackets |= reduce_words_of(chunk, start, text, edges, length, words);
    });
    if (brackets & ~control[BRACKETS]) atomicOr(control + BRACKETS, brackets);
}

#define LEXED(name, step, shared)                                                                   \
    extern "C" __global__ void __launch_bounds__(TEAM, AT_ONCE / TEAM)                              \
        name(const Byte *text, long long length, int *control, int *memory, const uint4 *tables,    \
             const uint4 *lexer, long long nodes, long long width, long long bytes, Cell *rests,    \
             const Byte *edges) {                                                                   \
        reduce_words_by<step, shared>(text, (int)length, control, memory, tables, lexer,            \
                                      (int)nodes, (int)width, (int)bytes, rests, edges);            \
    }
LEXED(reduce_words, unsigned short, true)
LEXED(reduce_many_words, unsigned int, false)

// What is left of the first round: how units pair up, and the next text. Maps follow.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    pair(int *control, int *memory, int *memory_of_units, long long bound, const Cell *rests,
         Item *next, long long capacity) {
    Grid grid(control + ARRIVED);
    Tiles tiles(memory, ceil_div(control[LENGTH], TILE));
    Units units(memory_of_units, (int)bound, 0);
    Round &round = units.round;
    __shared__ int before[THREADS];
    UnitsByTile by_tile(tiles, before);
    round.chunks = by_tile.all;
    if (blockIdx.x == 0 && threadIdx.x == 0) control[UNITS] = round.chunks;
    if (!grid.needs_this(ceil_div(round.chunks, THREADS))) return;
    each_block(grid, round, [&](int block) { describe_units(block, tiles, by_tile, units); });
    grid.wait();
    add_up_depths<THREADS>(round, control);
    if (control[ERROR]) return;  // by all blocks or by none: they have added up the same
    each_block(grid, round, [&](int block) { link_of(block, round); });
    grid.wait();
    each_block(grid, round, [&](int block) { count_units(block, tiles, units, rests); });
    grid.wait();
    int maps = 0, items = add_up_items<THREADS>(round, &maps) + 2 * WRAPPED;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        control[MAPS] = maps, control[ITEMS] = items;
        if (items > capacity) control[ERROR] = 1;  // spans longer than any span may be
    }
    if (items > capacity) return;
    if (WRAPPED && blockIdx.x == 0 && threadIdx.x == 0) {
        next[0] = OPENED | (FIRST_STATE + 1 + VALUES), next[items - 1] = CLOSE;
    }
    each_block(grid, round, [&](int block) { write_units(block, tiles, units, rests, next + WRAPPED); });
}

extern "C" __global__ void __launch_bounds__(TEAM, AT_ONCE / TEAM)
    compose(int *control, int *memory, int *memory_of_units, long long bound, const Cell *rests,
            const uint4 *memory_of_tables, Byte *pool) {
    if (control[ERROR]) return;
    Units units(memory_of_units, (int)bound, control[UNITS]);
    const int room = max_of(ceil_div(TILE * sizeof(Cell), 16), 2 * TEAM * MAP_BYTES / 16);
    ChainTables tables(memory_of_tables, kept(shared_memory + room));
    Tiles tiles(memory, ceil_div(control[LENGTH], TILE));
    int segments = control[MAPS];
    int4 next = tiles.head[blockIdx.x];
    for (int tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
        int4 head = next;
        if (tile + gridDim.x < tiles.count) next = tiles.head[tile + gridDim.x];  // on its way meanwhile
        __syncthreads();
        compose_tile(head, units, rests, tables, pool, segments, shared_memory);
    }
}

// Whether all that is left of a round of one block is one entry, or can become nothing else.
__device__ bool concludes(const Round &round, const Item *rests, int *control) {
    unsigned int own = threadIdx.x < round.chunks ? round.shape[threadIdx.x] : 0;
    int entries = (own & 255) + (own >> 16), all;
    sum_before<THREADS>(entries, &all);
    if (all != 1 && round.chunks > 1) return false;
    if (all == 1 ? entries == 1 : threadIdx.x == 0) {  // it is a value if it is no parenthesis
        Item value = all == 1 && own == 1 ? rests[threadIdx.x * CHUNK] - FIRST_VALUE : VALUES;
        control[RESULT] = value < VALUES ? (int)value : -1;
        if (value >= VALUES) control[ERROR] = 1;
    }
    return true;
}

// All other rounds, which leave their texts in two buffers by turns.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    finish(Item *text, Item *other, int *control, int *memory, long long bound,
           const uint4 *memory_of_tables, Byte *pool, Item *rests) {
    if (control[ERROR]) return;
    int length = control[ITEMS], maps = control[MAPS];
    Grid grid(control + ARRIVED + 1);
    if (!grid.needs_this(ceil_div(length, THREADS * CHUNK))) return;
    const int row = Column<Item, THREADS>::STEP;
    Item *stack = (Item *)shared_memory + ceil_div(row, 4) * 4;  // there is a row below
    Tables tables(memory_of_tables, stack + ceil_div((CHUNK + 1) * row, 4) * 4);
    for (int rounds = 2;; rounds++) {
        int chunks = ceil_div(length, chunk_size(length));
        bool alone = chunks <= THREADS;
        if (!grid.needs_this(ceil_div(chunks, THREADS))) return;
        Round round(memory, alone ? THREADS : (int)bound, chunks);
        each_block(grid, round, [&](int block) {
            reduce_items_of(block, round, text, length, tables, pool, stack, rests);
        });
        grid.wait();
        if (alone && concludes(round, rests, control)) {
            control[ROUNDS] = rounds;
            return;
        }
        add_up_depths<THREADS>(round, control);
        if (control[ERROR]) return;
        each_block(grid, round, [&](int block) { link_of(block, round); });
        grid.wait();
        each_block(grid, round, [&](int block) { match_of(block, round); });
        grid.wait();
        int most = length / 2;
        length = add_up_items<THREADS>(round, &maps);
        if (length > most) {  // spans longer than any span may be
            control[ERROR] = 1;
            return;
        }
        each_block(grid, round, [&](int block) {
            contract_of(block, round, rests, tables, pool, other, stack);
        });
        grid.wait();
        Item *swapped = text;
        text = other, other = swapped;
    }
}
