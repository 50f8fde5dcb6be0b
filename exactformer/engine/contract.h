// Contract: the spans of a segment become one span with a map, and the next text is written.

// The first items of a chunk's rest, in a column of shared memory, and their maps on their way.
struct Staged {
    Item *column;

    __device__ Staged(const Item *rest, int count, const Byte *pool, void *room)
        : column((Item *)room + threadIdx.x) {
        const int many = 4;  // loads on their way at the same time
#pragma unroll 1
        for (int start = 0; start < count; start += 4 * many) {
            uint4 some[many];
#pragma unroll
            for (int k = 0; k < many; k++) {
                if (start + 4 * k < count) some[k] = *(const uint4 *)(rest + start + 4 * k);
            }
#pragma unroll
            for (int k = 0; k < many; k++) {
                int i = start + 4 * k;
                put(i, count, some[k].x, pool), put(i + 1, count, some[k].y, pool);
                put(i + 2, count, some[k].z, pool), put(i + 3, count, some[k].w, pool);
            }
        }
    }
    __device__ void put(int i, int count, Item item, const Byte *pool) {
        if (i >= count) return;
        column[i * THREADS] = item;
        if (item & MAPPED) prefetch(pool, item);
    }
    __device__ Item operator[](int i) const { return column[i * THREADS]; }
};

__device__ void contract_chunk(Round &round, int chunk, const Item *rests, const Tables &tables,
                               Byte *pool, Item *out, int map, void *room) {
    int low = round.lowest(chunk), before = round.before(chunk), closing = round.closing(chunk);
    int start = 0, segment = 0, length = 0, inner = 0;
    int next_inner = closing ? round.inner[chunk] : 0;
    const Item *own = rests + (size_t)chunk * CHUNK;
    Staged rest(own, before, pool, room);
    Item item = 0;
    Cell state = 0, next_state = 0;
    Through through;  // of the values that the segment's innermost span may have
    Entries closes, firsts;
    closes.load(round.closes + chunk, round.bound, before);
    firsts.load(round.firsts + chunk, round.bound, before);
    int first = firsts.take();
    auto end_segment = [&]() {
        if (length > 1) {
            through.store(pool, map);
            item = MAPPED | map++;
        }
        if (length) *out++ = item;
    };
    auto go_through_map = [&]() {
        if (item & MAPPED) through.go_through(pool, item & ~MAPPED);
    };
#pragma unroll 1
    for (int k = 0; k < closing; k++) {
        int at = closes.take();
        if (at == first) {
            end_segment();
            first = firsts.take();
            inner = next_inner;
            if (segment >= NOTED) {
                Partners<-1> opener(round, chunk, low, low + closing);
                for (int i = 0; i < segment; i++) opener.pass(opener.next());
                opener.next();
                inner = innermost(opener);
            }
            segment++;
            next_state = (Cell)rests[at_least(inner - 1, 0)];
            if (first < CHUNK && segment < NOTED) {  // asked for before it is needed
                next_inner = round.inner[(size_t)segment * round.bound + chunk];
            }
#pragma unroll 1
            for (; start < at; start++) *out++ = rest[start];
            item = rest[at];
            length = 1;
        } else {
            state = next_state;  // of the span `length` levels further out
            next_state = (Cell)rests[at_least(inner - length - 1, 0)];
            if (length == 1) {
                through.reset();
                go_through_map();
            }
            through.enter(tables, state);
#pragma unroll 1
            for (; start < at; start++) through.read(tables, rest[start]);
            through.leave(tables);
            item = rest[at];
            go_through_map();
            length++;
        }
        start = at + 1;
    }
    end_segment();
#pragma unroll 1
    for (; start < before; start++) *out++ = rest[start];
    // Opening parentheses, the innermost segment first; in the text it comes last.
    int highest = low + round.opening(chunk);
    unsigned int kept = round.kept[chunk];
    auto each_kept = [&](auto use) {
        int level = highest;
        for (int segment = 0; segment < 4 && level > low; segment++) {
            use(level);
            level = low + (int)(kept >> 8 * segment & 255);
        }
        Partners<1> closer(round, chunk, low, level);
        for (; closer.level > low; closer.pass(closer.next())) use(closer.level);
    };
    each_kept([&](int) { out++; });
    each_kept([&](int level) { *--out = OPENED | own[before + level - low - 1]; });
    wait_for_copies();
}

__device__ void contract_of(int block, Round &round, const Item *rests, const Tables &tables,
                            Byte *pool, Item *next, void *room) {
    int chunk = block * THREADS + threadIdx.x;
    if (chunk >= round.chunks) return;
    unsigned int place = round.place[chunk];
    contract_chunk(round, chunk, rests, tables, pool,
                   next + round.first_item[block] + (place & 65535),
                   round.first_map[block] + (place >> 16), room);
}
