// Units: how those of all tiles pair up, and what they leave for the next round.

// What is known of the units, all in one array.
struct Units {
    int4 *record;           // of a unit: its first entry among the rests, entries other than `(`,
                            // `)` | those before it in its tile << 16, `(`
    int *tile;              // of a unit
    int *items, *segments;  // of a unit, in its block's output: items and segments before it
    int2 *segment;          // of a segment: the `)` of its tile that it begins with; its innermost `(`
    Round round;

    __device__ Units(int *memory, int bound, int count)
        : record((int4 *)memory), tile(memory + 4 * (size_t)bound), items(tile + bound),
          segments(items + bound), segment((int2 *)(segments + bound)),
          round((int *)(segment + 2 * (size_t)bound), bound, count) {}
    // The level of a noted segment of `(`, where a round notes shapes, places and sets of entries.
    __device__ unsigned short &level(int segment, int unit) const {
        return ((unsigned short *)round.shape)[(size_t)segment * round.bound + unit];
    }
    static_assert(NOTED * sizeof(short) <= 4 * sizeof(int), "as much room as is there at least");
};

// Which units are of which tile. Every block counts the units of all tiles, which are few bytes, so that
// none waits for another.
struct UnitsByTile {
    const Byte *units;  // of a tile
    int tiles, each;    // those that a thread counts
    int *before;        // of a thread, in shared memory: units before its tiles
    int all;

    __device__ UnitsByTile(const Tiles &of, int *before_)
        : units(of.units), tiles(of.count), each(ceil_div(of.count, 4 * THREADS) * 4), before(before_) {
        const int many = 16;  // loads on their way at the same time
        int first = threadIdx.x * each, count = 0;
        for (int start = first; start < first + each; start += 4 * many) {
            unsigned int some[many];
#pragma unroll
            for (int k = 0; k < many; k++) {
                some[k] = start + 4 * k < first + each ? four_from(start + 4 * k) : 0;
            }
#pragma unroll
            for (int k = 0; k < many; k++) count += sum(some[k]);
        }
        before[threadIdx.x] = sum_before<THREADS>(count, &all);
        __syncthreads();
    }
    // Numbers of units of four tiles, from one on that is a multiple of four, and what they add up to.
    __device__ unsigned int four_from(int tile) const {
        int more = tiles - tile;
        if (more <= 0) return 0;
        unsigned int four = *(const unsigned int *)(units + tile);
        return more < 4 ? four & ~(~0u << 8 * more) : four;
    }
    static __device__ int sum(unsigned int four) { return four * 0x01010101u >> 24; }

    // The tile of a unit, and how many units there are before that.
    __device__ int find(int unit, int *first) const {
        int thread = 0;  // the last one with no more before it
        for (int high = THREADS; high - thread > 1;) {
            int middle = (thread + high) / 2;
            if (before[middle] <= unit) thread = middle;
            else high = middle;
        }
        int tile = thread * each, count = before[thread];
        unsigned int four = four_from(tile);
        for (int here; count + (here = sum(four)) <= unit; count += here) {
            tile += 4;
            four = four_from(tile);
        }
        for (; count + (int)(four & 255) <= unit; four >>= 8) count += four & 255, tile++;
        *first = count;
        return tile;
    }
};
static_assert(4 * MOST_UNITS < 256, "those of four tiles fit in a byte");

__device__ void describe_units(int block, const Tiles &tiles, const UnitsByTile &by_tile, Units &units) {
    int unit = block * THREADS + threadIdx.x, closing = 0, opening = 0;
    if (unit < units.round.chunks) {
        int first, tile = by_tile.find(unit, &first);
        const uint2 *bounds = tiles.bounds_of(tile) + unit - first;
        uint2 begin = bounds[0], end = bounds[1];
        int before = (end.y & 65535) - (begin.y & 65535), rank = begin.y >> 16;
        closing = (int)(end.y >> 16) - rank, opening = (int)(end.x - begin.x) - before;
        units.record[unit] = {tile * TILE + (int)begin.x, before, closing | rank << 16, opening};
        units.tile[unit] = tile;
        if (unit == first) tiles.head[tile].w = first;
    }
    describe(units.round, block, closing, opening);
}

// The `)` of a tile, by their ranks, which are asked for in order.
struct Closes {
    enum { FAR = 32 };  // ranks: nearer ones are reached by going through all entries between
    enum { WORDS = 8, SHARE = 4 / sizeof(Cell), BITS = 8 * sizeof(Cell), SOME = WORDS * SHARE };
    static_assert(CLOSE != 0 && TILE % SOME == 0, "entries are fetched together, and blotted out");
    const unsigned int *directory;
    const Cell *rests;
    int tile, at, count;  // the entry behind a `)`, or the unit's first, and `)` before it
    int first, close;     // what was found

    __device__ Closes(const Tiles &tiles, int tile_, int at_, int count_, const Cell *rests_)
        : directory(tiles.directory_of(tile_)), rests(rests_), tile(tile_), at(at_), count(count_) {}
    // To a part of the tile before that `)`.
    __device__ void jump(int rank) {
        enum { TOP = TEAM > 256 ? 256 : TEAM > 64 ? 64 : TEAM > 16 ? 16 : 4 };
        int thread = 0;  // the last one with no more `)` before it
#pragma unroll 1
        for (int step = TOP; step; step /= 4) {
            int more = 0;
#pragma unroll
            for (int k = 1; k < 4; k++) {
                int other = thread + k * step;
                more += other < TEAM && (int)(directory[other] >> 16) <= rank;
            }
            thread += more * step;
        }
        at = tile * TILE + (directory[thread] & 65535), count = directory[thread] >> 16;
    }
    // Of the span that ends with a `)`: its first entry, and that `)`; its first entry alone where it is
    // not `whole`, so that there is no such `)`.
    __device__ void find(int rank, bool whole) {
        first = at;
        if (rank - count > FAR) jump(rank - 1);
#pragma unroll 1
        while (count < rank + whole) {
            int target = count < rank ? rank - 1 : rank;
            int start = at / SOME * SOME, skipped = at - start;
            const uint4 *from = (const uint4 *)(rests + start);
            uint4 low = from[0], high = from[1];
            unsigned int words[WORDS] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
            unsigned int found = 0;
            int place = -1;
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                int gone = skipped - w * SHARE;  // entries that were looked at before
                if (gone >= SHARE) words[w] = 0;
                else if (gone > 0) words[w] &= ~0u << BITS * gone;
                int here = closes_in(words[w]);
                if (place < 0 && count + here > target) found = words[w], place = start + w * SHARE;
                if (place < 0) count += here;
            }
            at = start + SOME;
            if (place < 0) continue;
#pragma unroll 1
            for (;; place++, found >>= BITS % 32) {
                if ((Cell)found == CLOSE && count++ == target) break;
            }
            at = place + 1;
            if (target < rank) first = at;
            else close = place;
        }
    }
};

// The segments of a unit and what it adds to the next text: counted, or written from `out` to `end`.
// Where it has been counted, entries and levels of the first segments are noted.
template <bool WRITE>
__device__ void walk_unit(const Tiles &tiles, Units &units, int u, const Cell *rests, int *items,
                          int *segments, int map, Item *out, Item *end) {
    const Round &round = units.round;
    int4 unit = units.record[u];
    int tile = units.tile[u], low = round.lowest(u);
    int closing = unit.z & 65535, rank = (unsigned int)unit.z >> 16, count = 0, length, segment = 0;
    Closes closes(tiles, tile, unit.x, rank, rests);
    Partners<-1> opener(round, u, low, low + closing);
#pragma unroll 1
    for (;; count += length, segment++, map++) {
        bool ends = count == closing;  // what comes after the last `)`
        unsigned int *noted = (unsigned int *)round.inner + (size_t)segment * round.bound + u;
        int first = unit.x, close = unit.x + unit.y;
        if (WRITE && segment < NOTED) {
            first += *noted & 65535, close = unit.x + (*noted >> 16);
        } else {
            closes.find(rank + count, !ends);
            first = closes.first;
            if (!ends) close = closes.close;
            if (segment < NOTED) *noted = (first - unit.x) | (close - unit.x) << 16;
        }
        if (!WRITE) *items += close - first;
#pragma unroll 1
        for (int i = first; WRITE && i < close; i++) *out++ = rests[i];
        if (ends) break;
        length = opener.next();
        if (WRITE) {
            int4 partner = units.record[opener.at];
            int inner = partner.x + partner.y + opener.level - opener.floor - 1;
            units.segment[map] = {rank + count, inner};
            *out++ = length > 1 ? MAPPED | map : CLOSE;
        } else {
            ++*items, ++*segments;
        }
        opener.pass(length);
    }
    // Opening parentheses, the innermost segment first; in the text it comes last.
    const Cell *opens = rests + unit.x + unit.y - 1;
    int level = unit.w;
#pragma unroll 1
    for (segment = 0; WRITE && out < end && segment < NOTED; segment++) {
        level = units.level(segment, u);
        *--end = OPENED | opens[level];
    }
    if (WRITE && out == end) return;
    Partners<1> closer(round, u, low, low + level);
    if (WRITE) closer.pass(closer.next());
#pragma unroll 1
    for (; closer.level > low; segment++, closer.pass(closer.next())) {
        if (WRITE) *--end = OPENED | opens[closer.level - low];
        else ++*items;
        if (!WRITE && segment < NOTED) units.level(segment, u) = closer.level - low;
    }
}

__device__ void count_units(int block, const Tiles &tiles, Units &units, const Cell *rests) {
    int unit = block * THREADS + threadIdx.x, items = 0, segments = 0, all_items, all_segments;
    if (unit < units.round.chunks) {
        walk_unit<false>(tiles, units, unit, rests, &items, &segments, 0, 0, 0);
    }
    int items_before = sum_before<THREADS>(items, &all_items);
    int segments_before = sum_before<THREADS>(segments, &all_segments);
    if (unit < units.round.chunks) {
        units.items[unit] = items_before, units.segments[unit] = segments_before;
    }
    if (threadIdx.x == 0) {
        units.round.items[block] = all_items, units.round.maps[block] = all_segments;
    }
}

__device__ void write_units(int block, const Tiles &tiles, Units &units, const Cell *rests, Item *out) {
    const Round &round = units.round;
    int unit = block * THREADS + threadIdx.x;
    if (unit >= round.chunks) return;
    bool last = threadIdx.x == THREADS - 1 || unit == round.chunks - 1;
    int end = last ? round.items[block] : units.items[unit + 1];
    out += round.first_item[block];
    walk_unit<true>(tiles, units, unit, rests, 0, 0, round.first_map[block] + units.segments[unit],
                    out + units.items[unit], out + end);
}
