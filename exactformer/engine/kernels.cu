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
// A comb is one long chain of such maps, a balanced tree is mostly reduced, and nothing asks which.
//
// Malformed text is never given a value: the last row of the table is a state that nothing leads out
// of, its value is the token BAD, and BAD leads every state there.
// Parentheses that do not pair up set the error in the control block.
//
// Glossary
//   state    the number of a row of the table: what was read of a span.
//   table    table[state * WIDTH + token] is the next state; with CLOSE for the token, the token of
//            the span's value, or BAD.
//   item     32 bits of a text after the first round: a token, OPENED | state, or MAPPED | map.
//   entry    what a chunk's stack and its rest hold: an item without OPENED, or a state.
//   rest     room for a chunk's size of entries, where it leaves what it did not reduce.
//   low      the least depth inside a chunk; with minima over FAN, FAN*FAN ... chunks, a tree.
//   spine    a kernel of one block that adds up what the blocks counted.
//   control  error, maps in use, result, brackets seen, then the length of the text of each round.
//
// The threads of a warp run in step, so that what one does alone costs all of them: searches, closing
// parentheses and values of a map are each gone through by all threads at the same time.
//
// The host defines, when it compiles: OPEN, CLOSE, FIRST_VALUE, TOKENS, VALUES, STATES, HOLES, START,
// CELL (unsigned type of a table entry), TABLE_BYTES, TABLE_SHARED, FIRST_CHUNK, CHUNK, FAN, and SPINE
// (threads of a spine).

#ifndef EMULATED  // tests run this very source without a GPU
extern __shared__ uint4 shared_memory[];
#endif

typedef unsigned char Byte;
typedef unsigned int Item;
typedef CELL Cell;

enum { SPACE = TOKENS, BAD = TOKENS + 1, WIDTH = TOKENS + 2 };
enum { THREADS = FAN * FAN, MAP_BYTES = (VALUES + 15) / 16 * 16 };
enum { ERROR = 0, MAPS = 1, RESULT = 2, BRACKETS = 3, LENGTH = 4 };  // indices in the control block
enum { NOTED = 8 };  // segments of a chunk that `match` notes for `contract`; more are searched again
#define OPENED 0x80000000u
#define MAPPED 0x40000000u

__device__ inline int at_least(int a, int b) { return a > b ? a : b; }
__device__ inline int at_most(int a, int b) { return a < b ? a : b; }
__device__ constexpr int ceil_div(int whole, int size) { return (whole + size - 1) / size; }

#include "tables.h"
#include "chunks.h"
#include "reduce.h"
#include "match.h"
#include "contract.h"
#include "words.h"

// Round r reads its length from control[LENGTH + r] and writes that of the next. A text that `finish`
// can take is left to it: then this round has nothing to do, and so have all that follow.

__device__ inline int chunks_of(const int *control, long long r) {
    int length = control[ERROR] ? 0 : control[LENGTH + r];
    return r == 0 ? ceil_div(length, FIRST_CHUNK) : length <= THREADS * CHUNK ? 0 : ceil_div(length, CHUNK);
}

extern "C" __global__ void reduce_bytes(const Byte *text, int *control, int *memory, long long bound,
                                        const uint4 *memory_of_tables, const Byte *tokens,
                                        Cell *rests) {
    Cell *stack = (Cell *)shared_memory;
    Byte *spelt = (Byte *)(stack + FIRST_CHUNK * Column<Cell>::STEP);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) spelt[i] = tokens[i];
    Tables tables(memory_of_tables, spelt + 256);
    __syncthreads();
    Round round(memory, (int)bound, chunks_of(control, 0));
    reduce_bytes_of(blockIdx.x, round, text, control[LENGTH], tables.next, spelt, stack, rests);
}

extern "C" __global__ void reduce_items(const Item *text, int *control, long long r, int *memory,
                                        long long bound, const uint4 *memory_of_tables,
                                        const Byte *pool, Item *rests) {
    Round round(memory, (int)bound, chunks_of(control, r));
    if (blockIdx.x * THREADS >= round.chunks) return;
    Item *stack = (Item *)shared_memory;
    Tables tables(memory_of_tables, stack + CHUNK * Column<Item>::STEP);
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
    if (blockIdx.x * THREADS >= round.chunks) return;
    if (r) match_of<CHUNK>(blockIdx.x, round);
    else match_of<FIRST_CHUNK>(blockIdx.x, round);
}

extern "C" __global__ void item_spine(int *control, long long r, int *memory, long long bound,
                                      long long capacity) {
    Round round(memory, (int)bound, chunks_of(control, r));
    __syncthreads();
    if (round.chunks) add_up_items<SPINE>(round, control, control + LENGTH + r + 1, (int)capacity);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    contract(int *control, long long r, int *memory, long long bound, const void *rests,
             const uint4 *memory_of_tables, Byte *pool, Item *next) {
    Round round(memory, (int)bound, chunks_of(control, r));
    if (blockIdx.x * THREADS >= round.chunks) return;
    int room = r ? CHUNK * sizeof(Item) : FIRST_CHUNK * sizeof(Cell);
    Tables tables(memory_of_tables, (Byte *)shared_memory + room * THREADS);
    if (r) {
        contract_of<Item, CHUNK>(blockIdx.x, round, (const Item *)rests, tables, pool, next,
                                 shared_memory);
    } else {
        contract_of<Cell, FIRST_CHUNK>(blockIdx.x, round, (const Cell *)rests, tables, pool, next,
                                       shared_memory);
    }
}

// All rounds that are left, by one block. Rounds leave their texts in two buffers by turns.
extern "C" __global__ void finish(Item *odd, Item *even, int *control, int *memory,
                                  const uint4 *memory_of_tables, Byte *pool, Item *rests) {
    __shared__ int length;
    if (control[ERROR]) return;
    Item *stack = (Item *)shared_memory;
    Tables tables(memory_of_tables, stack + CHUNK * Column<Item>::STEP);
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
        match_of<CHUNK>(0, round);
        __syncthreads();
        add_up_items<THREADS>(round, control, &length, before / 2);
        if (control[ERROR]) return;
        contract_of<Item, CHUNK>(0, round, rests, tables, pool, other, stack);
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
