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

// States of spans further and further out, which are entries in falling order: some at a time. The
// threads of a warp ask for more in the same step, so that none waits for what another one fetches, and
// the next ones are always on their way.
struct Outward {
    typedef unsigned long long Some;
    enum { SHARE = sizeof(Some) / sizeof(Cell), BITS = 8 * sizeof(Cell) };
    const Some *rests;
    int block, lowest, shift;  // the last one that was fetched, and the last one that will be
    Some high, low, next;

    __device__ Outward(const Cell *rests_, int first, int count) : rests((const Some *)rests_) {
        int end = first + 1;
        block = end / SHARE, lowest = (end - count) / SHARE, shift = end % SHARE * BITS;
        high = rests[block], low = fetch(), next = fetch();
    }
    __device__ Some fetch() { return --block >= lowest ? rests[block] : 0; }
    // The next ones, the first of them highest.
    __device__ Some take() {
        Some some = low >> shift | high << 1 << (8 * sizeof(Some) - 1 - shift);
        high = low, low = next, next = fetch();
        return some;
    }
    __device__ static Cell first_of(Some some) { return (Cell)(some >> (8 * sizeof(Some) - BITS)); }
};

// Maps of the threads of a block, joined from each thread where a segment begins to the next one: for
// groups of threads at once, each value of each by a thread.
struct Joined {
    enum { GROUP = 16 };
    static_assert(TEAM % GROUP == 0, "groups");
    Byte *parts, *joined;  // of a thread: its own map; with those before it in its group

    __device__ Joined(void *room) : parts((Byte *)room), joined(parts + TEAM * MAP_BYTES) {}
    __device__ void join(const Some<TEAM> &begins) {
#pragma unroll 1
        for (int i = threadIdx.x; i < TEAM / GROUP * MAP_BYTES; i += TEAM) {
            int first = i / MAP_BYTES * GROUP, entry = i % MAP_BYTES;
            unsigned int bits = begins.word[first / begins.LANES] >> first % begins.LANES;
            Byte value = map_entry(entry);
#pragma unroll 4
            for (int t = 0; t < GROUP; t++) {
                if (bits >> t & 1) value = map_entry(entry);
                value = go_through_one(parts + (first + t) * MAP_BYTES, value);
                joined[(first + t) * MAP_BYTES + entry] = value;
            }
        }
    }
    // Of all threads before this one, from the last of them where a segment begins.
    __device__ Through before(int thread, const Some<TEAM> &begins) const {
        Through through;
        through.reset();
        for (int t = at_least(begins.last(0, thread), 0) | (GROUP - 1); t < thread - 1; t += GROUP) {
            through.go_through(joined, t);
        }
        if (thread) through.go_through(joined, thread - 1);
        return through;
    }
};

// The maps of a tile's segments. Each thread goes through as many entries as the others; what it makes
// of its part of the first segment and of the last is joined with its neighbours'.
__device__ void compose_tile(const int4 &head, const Units &units, const Cell *rests,
                             const ChainTables &tables, Byte *pool, int segments_in_all,
                             uint4 *staged) {
    enum { SHARE = 4 / sizeof(Cell) };
    auto first_segment = [&](int unit) {
        return unit < units.round.chunks
                   ? units.round.first_map[unit / THREADS] + units.segments[unit]
                   : segments_in_all;
    };
    int thread = threadIdx.x;
    if (thread < head.z) prefetch(units.record + head.w + thread);
    int none = first_segment(head.w), end = first_segment(head.w + head.z), segment = none;
    if (segment == end) return;  // of the whole tile, so that no thread waits for the others
    const uint4 *from = (const uint4 *)(rests + head.x);
    for (int i = thread; i < ceil_div(head.y, 4 * SHARE); i += TEAM) copy_line(staged + i, from + i);
    __shared__ Some<TEAM> begins;
    __shared__ int2 some[TEAM];  // of the segments: mostly that is all
    if (none + thread < end) {
        some[thread] = units.segment[none + thread];
        prefetch(rests + some[thread].y);
    }
    auto segment_at = [&](int i) { return i - none < TEAM ? some[i - none] : units.segment[i]; };
    // A thread's entries are some words, an odd number, so that threads ask different banks for theirs.
    int words = ceil_div(ceil_div(head.y, TEAM), (int)SHARE) | 1;
    int all_words = ceil_div(head.y, (int)SHARE), active = ceil_div(all_words, words), all;
    wait_for_copies();
    __syncthreads();
    int start = thread * words * SHARE, closing = 0;
    const Cell *entries = (const Cell *)staged;
    const unsigned int *all_entries = (const unsigned int *)staged;
    for (int i = thread * words; i < at_most((thread + 1) * words, head.y / SHARE); i++) {
        closing += closes_in(all_entries[i]);
    }
    if (thread == active - 1 && head.y % SHARE) {  // what is less than a word
        unsigned int mask = (1u << head.y % SHARE * 8 * sizeof(Cell)) - 1;
        closing += closes_in(all_entries[head.y / SHARE] & mask);
    }
    int rank = sum_before<TEAM>(closing, &all);
    Chain through;
    through.reset();
    int ended = -1;  // the segment that ends here, and began before
    bool begun = false;
    if (closing) {
        int unit = head.w;  // the last unit and the last segment that begin no later
        for (int high = head.w + head.z; high - unit > 1;) {
            int middle = (unit + high) / 2;
            if ((int)((unsigned int)units.record[middle].z >> 16) <= rank) unit = middle;
            else high = middle;
        }
        for (int high = end; high - segment > 1;) {
            int middle = (segment + high) / 2;
            if (segment_at(middle).x <= rank) segment = middle;
            else high = middle;
        }
        int2 own = segment_at(segment);
        auto next_one = [&]() { return segment + 1 < end ? segment_at(segment + 1).x : TILE; };
        int next = next_one();
        for (int behind = rank + closing; rank < behind; unit++) {
            int4 record = units.record[unit];
            int last = at_most(((unsigned int)record.z >> 16) + (record.z & 65535), behind);
            int begin = record.x - head.x, first = at_least(begin, start);
            while (first > begin && entries[first - 1] != CLOSE) first--;  // in part another thread's
            const Cell *entry = entries + first;
            while (rank < last) {
                if (rank == next) segment++, own = segment_at(segment), next = next_one();
                if (rank == own.x) {  // a segment begins
                    if (segment > none) through.made(tables).store(pool, segment - 1);
                    if (!begun) ended = segment - 1;
                    begun = true;
                    through.reset();
                    while (*entry++ != CLOSE) {
                    }
                    rank++;
                }
                int more = at_most(last, next) - rank;
                if (more == 0) continue;
                Outward states(rests, own.y - (rank - own.x), more);
                rank += more;
                while (more) {
                    Outward::Some some = states.take();
                    int here = at_most(more, (int)Outward::SHARE);
                    more -= here;
                    for (; here; here--, some <<= Outward::BITS) {
                        through.enter(tables, Outward::first_of(some));
                        for (unsigned int token; (token = widened(*entry++)) != CLOSE;) {
                            through.read(tables, token);
                        }
                        through.leave(tables);
                    }
                }
            }
        }
    }
    __syncthreads();  // nobody needs entries any more: maps take their place
    Joined maps(staged);
    through.made(tables).store(maps.parts, thread);
    begins.fill(begun);
    __syncthreads();
    maps.join(begins);
    __syncthreads();
    if (begun && ended >= none) {
        Through whole = maps.before(thread, begins);
        whole.go_through(pool, ended);
        whole.store(pool, ended);
    }
    if (thread == active - 1) maps.before(active, begins).store(pool, end - 1);
}
