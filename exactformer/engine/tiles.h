// The first round. A block takes a TILE of the text, and each of its threads a chunk of it.
//
// What the chunks leave is joined (join.h): of a bushy tree only the parentheses are left that have
// their partners in other tiles. What is left then is cut into UNITS of the form
// a ) a ) ... a ) a ( s ( s ... ( s . Mostly that is one for a tile: of the side of a comb, where
// nothing can be reduced, it is one as well.

typedef Reducer<Cell, Column<Cell, TEAM>::STEP> Chunk;
enum { TILE = TEAM * FIRST_CHUNK };
enum { MOST_UNITS = 16 };  // of a tile: no more than 8 + 4 + 2 + 1 joins have spans enough to stop
static_assert(TEAM % MOST_UNITS == 0, "halves down to those");
static_assert((FIRST_CHUNK + 1) * Column<Cell, TEAM>::STEP <= 1 << 16, "places in stacks take 16 bits");

// What is known of the tiles, all in one array.
struct Tiles {
    int4 *head;      // of a tile: its first entry among the rests, entries, units, those before it
    uint2 *bounds;   // of a unit, and behind the last: entries before it; other than `(` | `)` << 16
    unsigned int *directory;  // of a thread: entries before its own | `)` << 16
    Byte *units;              // of a tile: as in its head, close together
    int count;

    __device__ Tiles(int *memory, int count_) : head((int4 *)memory), count(count_) {
        bounds = (uint2 *)(head + count);
        directory = (unsigned int *)(bounds + (size_t)count * (MOST_UNITS + 1));
        units = (Byte *)(directory + (size_t)count * TEAM);
    }
    __device__ uint2 *bounds_of(int tile) const { return bounds + (size_t)tile * (MOST_UNITS + 1); }
    __device__ unsigned int *directory_of(int tile) const { return directory + (size_t)tile * TEAM; }
};

// Entries in a word of them that are `)`: no state has its number.
__device__ inline int closes_in(unsigned int word) {
    const unsigned int ones = ~0u / (Cell)~0, low = (ones << (8 * sizeof(Cell) - 1)) - ones;
    unsigned int other = word ^ ones * CLOSE;  // nothing in those; all but the highest bit of each:
    return __popc(~(((other & low) + low) | other | low));
}

template <int N> struct Threads {
    enum { COUNT = N };
};

// The rest of a tile whose chunks are reduced. All of the tile is read by then, so that the rests may lie
// where the text does, if entries are single bytes. They are written through `window`, in whole lines:
// those of all threads at once where there are few, of some threads after others where there are many,
// but all threads of the block gather them. One word of 33 there is left out, so that threads with as
// many entries as a line has do not wait for the same bank.
__device__ void finish_tile(Chunk &chunk, unsigned int *window, int tile, Tiles &tiles, Cell *rests) {
    enum { SHARE = 4 / sizeof(Cell), BITS = 8 * sizeof(Cell), STEP = Column<Cell, TEAM>::STEP };
    enum { WINDOW = TEAM * WINDOW_WORDS * SHARE };  // entries
    // Threads whose entries have room in any case, so that as many others gather for each.
    enum { FEW = highest_power(min_of(WINDOW / FIRST_CHUNK, min_of(TEAM, 32))) };
    static_assert(FEW > 0 && TEAM % FEW == 0, "the entries of a thread have room");
    __shared__ Left<TEAM> left;
    __shared__ int counted[FEW];  // `)` of those threads, where several gather the entries of each
    join_all(left, chunk, TILE / MOST_UNITS);
    int thread = threadIdx.x, before = chunk.floor(), count = before + chunk.opening();
    // Units begin where a `)`, or a token that belongs before one, comes after a `(`.
    int opener = before ? left.with_opens.last(0, thread) : -1;
    bool apart = opener >= 0 && opener >= left.with_tokens.last(0, thread);
    unsigned int total, all, place = sum_before<TEAM>((unsigned int)count | apart << 16, &total);
    int entries = total & 65535, units = entries ? (total >> 16) + 1 : 0, offset = place & 65535;
    left.of[thread].offset = offset;
    if (thread < FEW) counted[thread] = 0;
    __syncthreads();
    Cell *lines = rests + (size_t)tile * TILE;
    int closing = 0;
    auto write_by = [&](auto threads) {  // the entries of so many threads at once
        const int some = threads.COUNT;
        for (int first = 0, start = 0, end; first < TEAM; first += some, start = end) {
            end = first + some < TEAM ? left.of[first + some].offset : entries;
            if (start == end) continue;
            int owner = first + thread % some, base = start / SHARE;
            Remains own = left.of[owner];
            Chunk from = chunk;
            from.bottom = own.front, from.ground = own.ground, from.top = own.top;
            int floor = from.floor(), height = from.height(), closes = 0;
            int i = thread / some * SHARE - own.offset % SHARE;  // by words
            for (; i < height; i += TEAM / some * SHARE) {
                unsigned int to = (unsigned int)(own.offset + i) / SHARE - base;
                to += to / 32;
                if (i >= 0 && i + SHARE <= height && (i >= floor || i + SHARE <= floor)) {
                    unsigned int word = 0;
                    const Cell *cells = &from.left(i);
#pragma unroll
                    for (int k = 0; k < SHARE; k++) word |= (unsigned int)cells[k * STEP] << k * BITS;
                    window[to] = word;
                    closes += closes_in(word);
                } else {  // a word that is shared with neighbours, or by both kinds of entries
#pragma unroll
                    for (int k = 0; k < SHARE; k++) {
                        if (i + k < 0 || i + k >= height) continue;
                        Cell entry = from.left(i + k);
                        closes += entry == CLOSE;
                        ((Cell *)(window + to))[k] = entry;
                    }
                }
            }
            if (some == TEAM) closing = closes;
            else if (closes) atomicAdd(counted + owner - first, closes);
            __syncthreads();
            if (some < TEAM && thread >= first && thread < first + some) {
                closing = counted[thread - first];
                counted[thread - first] = 0;
            }
            for (int w = base + thread; w * SHARE < end; w += TEAM) {
                const unsigned int *word = window + (w - base) + (w - base) / 32;
                if (w * SHARE >= start && (w + 1) * SHARE <= end) {
                    ((unsigned int *)lines)[w] = *word;
                } else {  // shared with those before or behind
#pragma unroll
                    for (int k = 0; k < SHARE; k++) {
                        int at = w * SHARE + k;
                        if (at >= start && at < end) lines[at] = ((const Cell *)word)[k];
                    }
                }
            }
            __syncthreads();
        }
    };
    if (entries <= WINDOW) write_by(Threads<TEAM>());
    else write_by(Threads<FEW>());
    unsigned int sum = sum_before<TEAM>((unsigned int)before | closing << 16, &all);
    tiles.directory_of(tile)[thread] = offset | (sum & 0xffff0000u);
    uint2 *bounds = tiles.bounds_of(tile);
    if (apart) bounds[(place >> 16) + 1] = {(unsigned int)offset, sum};
    if (thread == 0) {
        tiles.head[tile] = {tile * TILE, entries, units, 0};
        tiles.units[tile] = units;
        bounds[0] = {0, 0};
        bounds[units] = {(unsigned int)entries, all};
    }
}

// 16 bytes of the text. The line that they are in comes nearer with them: a thread reads on there. Others
// may overwrite their tiles meanwhile, so that no cache for what never changes may be asked.
__device__ inline uint4 fetch(const Byte *bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint4 some;
    asm("ld.global.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(some.x), "=r"(some.y), "=r"(some.z), "=r"(some.w)
        : "l"(bytes));
    return some;
#else
    return *(const uint4 *)bytes;
#endif
}

// Goes through some bytes of the text, by a number for each; the next 32 are on their way meanwhile: the
// compiler puts off each load to the end of the turn.
template <class Use>
__device__ inline void each_number(const Byte *bytes, int count, const Byte *numbers, Use use) {
    uint4 some = {0, 0, 0, 0}, ahead = some;
    if (count >= 16) some = fetch(bytes);
    if (count >= 32) ahead = fetch(bytes + 16);
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        unsigned int words[4] = {some.x, some.y, some.z, some.w};
        some = ahead;
        if (i + 48 <= count) ahead = fetch(bytes + i + 32);
        Byte found[16];  // all before the first is used, since they do not wait for each other
#pragma unroll
        for (int k = 0; k < 16; k++) found[k] = numbers[__byte_perm(words[k / 4], 0, 0x4440 + k % 4)];
#pragma unroll
        for (int k = 0; k < 16; k++) use(found[k]);
    }
    for (; i < count; i++) use(numbers[bytes[i]]);
}

// Bytes of the text, or token ids: `tokens` says what each byte is.
__device__ void reduce_bytes_of(Chunk &reducer, int start, const Byte *text, int length,
                                const Byte *tokens) {
    int count = at_most(length - start, (int)FIRST_CHUNK);
    each_number(text + start, count, tokens, [&](Byte token) { reducer.take(token); });
}
