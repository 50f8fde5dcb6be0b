// Chains: the segments of nested spans that a tile closes, each composed into one map by all threads of a
// block. Of a comb that is nearly all there is to do.

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
