// What is read off the weights, and what becomes of values on their way out of nested spans.

// A line from the GPU's main memory to shared memory, while the thread goes on; and the end of that.
__device__ inline void copy_line(uint4 *to, const uint4 *from) {
#if __CUDA_ARCH__ >= 800
    unsigned int place = (unsigned int)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    *to = *from;
#endif
}
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// A place in shared memory whose address a compiler keeps, instead of working it out at each use.
__device__ inline uint4 *kept(uint4 *place) {
#ifdef EMULATED
    return place;
#else
    unsigned int address = (unsigned int)__cvta_generic_to_shared(place);
    asm volatile("" : "+r"(address));
    return (uint4 *)__cvta_shared_to_generic(address);
#endif
}

// A cell as a number of 32 bits for good: a compiler would clear the higher ones at each use.
__device__ inline unsigned int widened(Cell cell) {
    unsigned int number = cell;
    asm("" : "+r"(number));
    return number;
}

// The beginning of what is read off the weights, brought to shared memory where all of it is small.
__device__ inline const uint4 *nearby(const uint4 *memory, int bytes, void *room) {
#if TABLE_SHARED
    uint4 *copy = (uint4 *)room;
    for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) copy[i] = memory[i];
    __syncthreads();
    return copy;
#else
    return memory;
#endif
}

// It begins with the table, which is all that is needed to reduce.
enum { NEXT_BYTES = ceil_div(STATES * WIDTH * sizeof(Pair), 16) * 16 };
__device__ inline const Pair *table_in(const uint4 *memory) {
    return (const Pair *)memory - FIRST_STATE * WIDTH;
}
typedef decltype(Pair(0) + 0u) State;  // a pair, in a register
__device__ inline unsigned int number_of(State state) {  // found once for all uses, as compilers see it
    return sizeof(Cell) == 4 ? state : __byte_perm(state, 0, sizeof(Cell) == 1 ? 0x4440 : 0x4410);
}
__device__ inline unsigned int value_of(State state) { return state >> 8 * sizeof(Cell); }

// Runs of tokens with no parenthesis among them, which are finitely many by what they do to all states.
#if RUNS
struct Runs {
    const uint4 *shortest;         // of a run: a shortest one that does the same, and its length last
    const unsigned short *before;  // by run and token: the run with that token in front

    __device__ Runs(const uint4 *memory)
        : shortest(memory + RUNS_AT / 16), before((const unsigned short *)(shortest + RUNS)) {}
};
#else
struct Runs {
    __device__ Runs(const uint4 *) {}
};
#endif

struct Tables {
    Runs runs;
    const Pair *next;    // by state and token: the table
    const uint4 *maps;   // of a hole that may be closed: the map of the span
    const Cell *enter;   // by state: the hole that is left when a span of unknown value comes next
    const Cell *onward;  // by hole and token: the next hole

    // All of them, or those from a line on, are brought to shared memory.
    __device__ Tables(const uint4 *memory, void *room, int first = 0) : runs(memory) {
        const uint4 *near = nearby(memory + first, TABLE_BYTES - first * 16, room) - first;
        next = table_in(first ? memory : near), maps = near + NEXT_BYTES / 16;
        enter = (const Cell *)(maps + HOLES) - FIRST_STATE, onward = enter + FIRST_STATE + STATES;
    }
};

// What becomes of each value on its way out of nested spans, from the inside to the outside.
#if HOLES
// Of a span that holds one span of unknown value, all that matters is the HOLE: which state each value
// would lead to. There are few, so that they are states of an automaton themselves, and each that may
// be closed is one of few maps. Maps are 16 bytes: entry v is what becomes of value v, NONE of NONE.
enum { NONE = 15 };

// Four of the eight bytes of `low` and `high`, all less than 128, by the digits of `which`; where a
// digit is 8 or more, zero.
__device__ inline unsigned int pick(unsigned int low, unsigned int high, unsigned int which) {
#ifdef EMULATED
    unsigned int chosen = __byte_perm(low, high, which);
    for (int i = 0; i < 4; i++) {
        if (which >> 4 * i & 8) chosen &= ~(255u << 8 * i);
    }
#else
    unsigned int chosen;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(low), "r"(high), "r"(which));
#endif
    return chosen;
}

struct Through {
    enum { WORDS = (VALUES + 3) / 4 };
    unsigned int word[WORDS], hole;

    __device__ void reset() {
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w] = 0x03020100u + w * 0x04040404u;
        hole = 0;  // tokens may be read that nobody asks about
    }
    __device__ void map(const uint4 &map) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) {  // four entries at once
            unsigned int which = __byte_perm(word[w] | word[w] >> 4, 0, 0x4420);
            word[w] = pick(map.x, map.y, which) | pick(map.z, map.w, which ^ 0x8888u);
        }
    }
    __device__ void enter(const Tables &tables, Cell state) { hole = tables.enter[state]; }
    __device__ void read(const Tables &tables, Item token) {
        hole = tables.onward[hole * WIDTH + token];
    }
    __device__ void leave(const Tables &tables) { map(tables.maps[hole]); }
    __device__ void go_through(const Byte *pool, int number) {
        map(*(const uint4 *)(pool + (size_t)number * MAP_BYTES));
    }
    __device__ void store(Byte *pool, int map) const {
        unsigned int all[4] = {~0u / 17, ~0u / 17, ~0u / 17, ~0u / 17};  // NONE everywhere
#pragma unroll
        for (int w = 0; w < WORDS; w++) all[w] = word[w];
        *(uint4 *)(pool + (size_t)map * MAP_BYTES) = {all[0], all[1], all[2], all[3]};
    }
    __device__ const Through &made(const Tables &) const { return *this; }
};

#if NUMBERS
// What long chains of spans need where few maps are made up of those of holes, whatever their order:
// these have numbers.
struct ChainTables {
    const Cell *enter, *onward;
    const Byte *after;  // by number and hole: the number of one map after another
    const Byte *maps;   // by number, in main memory: few are asked for

    __device__ ChainTables(const uint4 *memory, void *room) {
        enum { ALL = TABLE_BYTES / 16 + ceil_div(NUMBERS * HOLES, 16), FIRST = NEXT_BYTES / 16 + HOLES };
        maps = (const Byte *)(memory + ALL);
        memory = nearby(memory + FIRST, (ALL - FIRST) * 16, room);
        enter = (const Cell *)memory - FIRST_STATE, onward = enter + FIRST_STATE + STATES;
        after = (const Byte *)(memory + TABLE_BYTES / 16 - FIRST);
    }
};

// The same as `Through` by numbers, so that to leave a span is one look-up.
struct Numbered {
    unsigned int number, hole;

    __device__ void reset() { number = 0, hole = 0; }
    __device__ void enter(const ChainTables &tables, Cell state) { hole = tables.enter[state]; }
    __device__ void read(const ChainTables &tables, Item token) {
        hole = tables.onward[hole * WIDTH + token];
    }
    __device__ void leave(const ChainTables &tables) { number = tables.after[number * HOLES + hole]; }
    __device__ Through made(const ChainTables &tables) const {
        Through through;
        through.reset();
        through.go_through(tables.maps, number);
        return through;
    }
};
#endif

// The entry that a value has in the map that changes none, and what another map makes of it.
__device__ inline Byte map_entry(int value) { return value < VALUES ? value : NONE; }
__device__ inline Byte go_through_one(const Byte *map, Byte entry) { return map[entry]; }

__device__ inline Item apply(const Byte *pool, Item map, Item token) {
    Byte value = token == BAD ? NONE : token - FIRST_VALUE;
    value = pool[(size_t)(map & ~MAPPED) * MAP_BYTES + value];
    return value == NONE ? BAD : value + FIRST_VALUE;
}
#else
// For many values, or many holes: the automaton is run for each value. Maps hold tokens.
struct Through {
    Item value[VALUES];
    Cell state[VALUES];  // inside the next span that they are on their way out of

    __device__ void reset() {
#pragma unroll
        for (int v = 0; v < VALUES; v++) value[v] = FIRST_VALUE + v, state[v] = FLOOR;
    }
    __device__ void enter(const Tables &tables, Cell around) {
#pragma unroll
        for (int v = 0; v < VALUES; v++) state[v] = tables.next[around * WIDTH + value[v]];
    }
    __device__ void read(const Tables &tables, Item token) {
#pragma unroll
        for (int v = 0; v < VALUES; v++) state[v] = tables.next[state[v] * WIDTH + token];
    }
    __device__ void leave(const Tables &tables) {
#pragma unroll
        for (int v = 0; v < VALUES; v++) value[v] = tables.next[state[v] * WIDTH + CLOSE];
    }
    __device__ void go_through(const Byte *pool, int number) {
        const Byte *map = pool + (size_t)number * MAP_BYTES - FIRST_VALUE;
#pragma unroll
        for (int v = 0; v < VALUES; v++) value[v] = value[v] == BAD ? BAD : map[value[v]];
    }
    __device__ void store(Byte *pool, int map) const {
#pragma unroll
        for (int v = 0; v < VALUES; v++) pool[(size_t)map * MAP_BYTES + v] = (Byte)value[v];
    }
    __device__ const Through &made(const Tables &) const { return *this; }
};

__device__ inline Byte map_entry(int value) { return value < VALUES ? FIRST_VALUE + value : BAD; }
__device__ inline Byte go_through_one(const Byte *map, Byte entry) {
    return entry == BAD ? BAD : map[entry - FIRST_VALUE];
}

__device__ inline Item apply(const Byte *pool, Item map, Item token) {
    return token == BAD ? BAD : pool[(size_t)(map & ~MAPPED) * MAP_BYTES + token - FIRST_VALUE];
}
#endif

#if NUMBERS
typedef Numbered Chain;
#else
typedef Through Chain;
struct ChainTables : Tables {
    __device__ ChainTables(const uint4 *memory, void *room)
        : Tables(memory, room, HOLES ? NEXT_BYTES / 16 : 0) {}  // by holes nothing else is read
};
#endif

// Has a line fetched before it is needed.
__device__ inline void prefetch(const void *at) {
#ifndef EMULATED
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
#endif
}
// A map, by a block of THREADS. What GPUs make of a prefetch is up to them; a copy to shared memory, where
// nobody reads it, leaves its line in the nearest cache. Copies are waited for in the end.
__device__ inline void prefetch(const Byte *pool, Item map) {
    const Byte *at = pool + (size_t)(map & ~MAPPED) * MAP_BYTES;
#if __CUDA_ARCH__ >= 800
    __shared__ unsigned int unread[THREADS];
    unsigned int place = (unsigned int)__cvta_generic_to_shared(unread + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(at) : "memory");
#else
    prefetch(at);
#endif
}

template <class Entry> __device__ inline bool is_close(Entry entry) {
    return entry == CLOSE || (sizeof(Entry) == 4 && (entry & MAPPED));
}
