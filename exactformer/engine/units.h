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
};

// How many units there are before each tile, and which tile each is of.
template <int N> __device__ void add_up_units(Tiles &tiles, int *tile_of, int *control) {
    const int many = 16;  // loads on their way at the same time
    int each = ceil_div(tiles.count, N), units = 0, all;
    int first = at_most(threadIdx.x * each, tiles.count), last = at_most(first + each, tiles.count);
    auto each_tile = [&](auto use) {
        for (int start = first; start < last; start += many) {
            int some[many];
#pragma unroll
            for (int k = 0; k < many; k++) some[k] = start + k < last ? tiles.head[start + k].z : 0;
#pragma unroll
            for (int k = 0; k < many; k++) use(start + k, some[k]);
        }
    };
    each_tile([&](int, int here) { units += here; });
    units = sum_before<N>(units, &all);
    each_tile([&](int tile, int here) {
        if (tile < last) tiles.head[tile].w = units;
        for (int end = units + here; units < end; units++) tile_of[units] = tile;
    });
    if (threadIdx.x == 0) control[UNITS] = all;
}

__device__ void describe_units(int block, const Tiles &tiles, Units &units) {
    int unit = block * THREADS + threadIdx.x, closing = 0, opening = 0;
    if (unit < units.round.chunks) {
        int tile = units.tile[unit];
        int4 head = tiles.head[tile];
        const uint2 *bounds = tiles.bounds_of(tile) + unit - head.w;
        uint2 begin = bounds[0], end = bounds[1];
        int before = (end.y & 65535) - (begin.y & 65535), rank = begin.y >> 16;
        closing = (int)(end.y >> 16) - rank, opening = (int)(end.x - begin.x) - before;
        units.record[unit] = {head.x + (int)begin.x, before, closing | rank << 16, opening};
    }
    describe(units.round, block, closing, opening);
}

// Entries among the rests, fetched eight bytes at a time.
struct Window {
    typedef unsigned long long Some;
    enum { SHARE = sizeof(Some) / sizeof(Cell) };
    const Some *rests;
    unsigned int block;
    Some some;

    __device__ Window(const Cell *rests_) : rests((const Some *)rests_), block(~0u), some(0) {}
    __device__ Cell operator[](unsigned int at) {
        if (at / SHARE != block) {
            block = at / SHARE;
            some = rests[block];
        }
        return (Cell)(some >> 8 * sizeof(Cell) * (at % SHARE));
    }
};

// The `)` of a tile, by their ranks, which are asked for in order.
struct Closes {
    enum { FAR = 64 };  // ranks: nearer ones are reached by going through all entries between
    const unsigned int *directory;
    Window entries;
    int tile, at, count;  // the next entry to look at, and `)` before it

    __device__ Closes(const Tiles &tiles, int tile_, int at_, int count_, const Cell *rests)
        : directory(tiles.directory_of(tile_)), entries(rests), tile(tile_), at(at_), count(count_) {}
    __device__ int operator[](int rank) {
        if (rank - count > FAR) {
            int thread = 0;  // the last one with no more `)` before it
            for (int high = TEAM; high - thread > 1;) {
                int middle = (thread + high) / 2;
                if ((int)(directory[middle] >> 16) <= rank) thread = middle;
                else high = middle;
            }
            at = tile * TILE + (directory[thread] & 65535), count = directory[thread] >> 16;
        }
        while (count <= rank) count += entries[at++] == CLOSE;
        return at - 1;
    }
};

// The segments of a unit and what it adds to the next text: counted, or written as well.
template <bool WRITE>
__device__ void walk_unit(const Tiles &tiles, Units &units, int u, const Cell *rests, int *items,
                          int *segments, int map, Item *out) {
    const Round &round = units.round;
    int4 unit = units.record[u];
    int tile = units.tile[u], low = round.lowest(u);
    int closing = unit.z & 65535, rank = (unsigned int)unit.z >> 16, count = 0, length;
    int start = unit.x;  // of what comes after the last `)`
    Closes closes(tiles, tile, start, rank, rests);
    auto put = [&](Item item) {
        if (WRITE) *out++ = item;
        else ++*items;
    };
    for (Partners<-1> opener(round, u, low, low + closing); count < closing; count += length) {
        length = opener.next();
        int4 partner = units.record[opener.at];
        if (WRITE) {
            int inner = partner.x + partner.y + opener.level - opener.floor - 1;
            units.segment[map] = {rank + count, inner};
        }
        opener.pass(length);
        int close = closes[rank + count], first = close;
        while (first > start && rests[first - 1] != CLOSE) first--;
        for (int i = first; i < close; i++) put(rests[i]);
        put(length > 1 ? MAPPED | map : CLOSE);
        map++;
        if (!WRITE) ++*segments;
    }
    if (closing) start = closes[rank + closing - 1] + 1;
    for (int i = start; i < unit.x + unit.y; i++) put(rests[i]);
    // Opening parentheses, the innermost segment first; in the text it comes last.
    int highest = low + unit.w;
    for (Partners<1> closer(round, u, low, highest); closer.level > low; closer.pass(closer.next())) {
        if (WRITE) out++;
        else ++*items;
    }
    if (!WRITE) return;
    for (Partners<1> closer(round, u, low, highest); closer.level > low; closer.pass(closer.next())) {
        *--out = OPENED | rests[unit.x + unit.y + closer.level - low - 1];
    }
}

__device__ void count_units(int block, const Tiles &tiles, Units &units, const Cell *rests) {
    int unit = block * THREADS + threadIdx.x, items = 0, segments = 0, all_items, all_segments;
    if (unit < units.round.chunks) {
        walk_unit<false>(tiles, units, unit, rests, &items, &segments, 0, 0);
    }
    int items_before = sum_before<THREADS>(items, &all_items);
    int segments_before = sum_before<THREADS>(segments, &all_segments);
    if (unit < units.round.chunks) {
        units.items[unit] = items_before, units.segments[unit] = segments_before;
    }
    if (threadIdx.x == 0) {
        units.round.first_item[block] = all_items, units.round.first_map[block] = all_segments;
    }
}

__device__ void write_units(int block, const Tiles &tiles, Units &units, const Cell *rests, Item *out) {
    int unit = block * THREADS + threadIdx.x;
    if (unit >= units.round.chunks) return;
    walk_unit<true>(tiles, units, unit, rests, 0, 0, units.round.first_map[block] + units.segments[unit],
                    out + units.round.first_item[block] + units.items[unit]);
}
