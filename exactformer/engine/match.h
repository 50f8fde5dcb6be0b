// Match: pairs the parentheses that chunks have left, and counts what the next text will hold.

// Depth at the start of each block, and the upper levels of the tree of least depths. All blocks that
// run write all of it, so that none waits for another; they write the same.
template <int N> __device__ void add_up_depths(Round &round, int *control) {
    int blocks = ceil_div(round.chunks, THREADS), each = ceil_div(blocks, N);
    int first = at_most(threadIdx.x * each, blocks), last = at_most(first + each, blocks);
    int size = above(round.bound), *low = round.low + round.bound + size;
    int rise = 0, total;  // `low` now is the level that has a node for each block
#pragma unroll 1
    for (int i = first; i < last; i++) rise += round.rise[i];
    int depth = sum_before<N>(rise, &total);
#pragma unroll 1
    for (int i = first; i < last; i++) {
        int least = round.least[i] + depth;
        round.depth[i] = depth;
        low[i] = least;
        depth += round.rise[i];
        if (least < 0) control[ERROR] = 1;  // a `)` too many
    }
    if (total != 0) control[ERROR] = 1;  // `(` without `)`
    __syncthreads();
    size = above(size);
    for (int count = blocks; count > 1; count = ceil_div(count, FAN), low += size, size = above(size)) {
        for (int i = threadIdx.x; i < ceil_div(count, FAN); i += N) {
            int least = low[i * FAN];
#pragma unroll
            for (int k = 1; k < FAN; k++) least = at_most(least, low[at_most(i * FAN + k, count - 1)]);
            low[size + i] = least;
        }
        __syncthreads();
    }
}

// A set of entries of a chunk, kept in registers.
struct Entries {
    enum { WORDS = ceil_div(CHUNK, 32) };
    unsigned int word[WORDS];

    __device__ void load(const unsigned int *from, int apart, int before) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w] = w * 32 < before ? from[(size_t)w * apart] : 0;
    }
    __device__ void store(unsigned int *to, int apart, int before) const {
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            if (w * 32 < before) to[(size_t)w * apart] = word[w];
        }
    }
    __device__ void clear() {
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w] = 0;
    }
    __device__ void add(int entry) {
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w] |= entry / 32 == w ? 1u << entry % 32 : 0;
    }
    // Number k of them, from 0, in order.
    __device__ int operator[](int k) const {
        int start = 0;
        unsigned int bits = 0;
        bool found = false;
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            int here = __popc(word[w]);
            if (!found) {
                if (k < here) found = true, bits = word[w], start = w * 32;
                else k -= here;
            }
        }
#pragma unroll
        for (int half = 16; half; half /= 2) {
            int here = __popc(bits & ((1u << half) - 1));
            if (k >= here) k -= here, bits >>= half, start += half;
        }
        return start;
    }
    // The first one, taken out; CHUNK where none is left.
    __device__ int take() {
        int which = WORDS - 1;
        unsigned int bits = word[WORDS - 1];
#pragma unroll
        for (int w = WORDS - 2; w >= 0; w--) {
            if (word[w]) which = w, bits = word[w];
        }
#pragma unroll
        for (int w = 0; w < WORDS; w++) word[w] = w == which ? bits & (bits - 1) : word[w];
        return bits ? which * 32 + __ffs(bits) - 1 : CHUNK;
    }
};

// The chunks whose `(` pair with the `)` of a chunk, or the reverse, the nearest first. From a chunk
// that is used up it goes on with the nearest one that is lower: all between are closed in themselves.
template <int SIDE> struct Partners {
    const Round &round;
    int low, level, at, floor;

    __device__ Partners(const Round &round_, int chunk, int low_, int level_)
        : round(round_), low(low_), level(level_), at(chunk + SIDE) {
        if (level > low) floor = round.lowest(at);
    }
    // Goes to the next partner; the length of the segment with it.
    __device__ int next() {
#pragma unroll 1
        while (floor >= level) {
            at = SIDE < 0 ? round.left[at] : round.right[at];
            floor = round.lowest(at);
        }
        return level - at_least(low, floor);
    }
    __device__ void pass(int length) { level -= length; }
};

// The entry of the innermost `(` of a segment of `)`.
__device__ inline int innermost(const Partners<-1> &partner) {
    return partner.at * CHUNK + partner.round.before(partner.at) + partner.level - partner.floor - 1;
}

// How many items and maps a chunk adds to the next text.
__device__ void count_chunk(Round &round, int chunk, int *items, int *maps) {
    int low = round.lowest(chunk), before = round.before(chunk), closing = round.closing(chunk);
    Entries closes, firsts;
    closes.load(round.closes + chunk, round.bound, before);
    firsts.clear();
    Partners<-1> opener(round, chunk, low, low + closing);
    for (int count = 0, segment = 0, length; count < closing; segment++, count += length) {
        length = opener.next();
        if (segment < NOTED) {
            round.inner[(size_t)segment * round.bound + chunk] = innermost(opener);
        }
        opener.pass(length);
        int at = closes[count];
        firsts.add(at);
        *items += at - (count ? closes[count - 1] : -1);
        *maps += length > 1;
    }
    *items += before - (closing ? closes[closing - 1] + 1 : 0);
    firsts.store(round.firsts + chunk, round.bound, before);
    Partners<1> closer(round, chunk, low, low + round.opening(chunk));
    unsigned int kept = 0;
    int segment = 0;
    for (; closer.level > low; segment++) {
        closer.pass(closer.next());
        if (segment < 4) kept |= (unsigned int)(closer.level - low) << 8 * segment;
    }
    round.kept[chunk] = kept;
    *items += segment;
}

// Finds the nearest lower chunks. There is one to each side, or what is lower is the text's own end.
__device__ void link_of(int block, Round &round) {
    int chunk = block * THREADS + threadIdx.x;
    if (chunk >= round.chunks) return;
    int low = round.lowest(chunk);
    round.left[chunk] = nearest<-1>(round, chunk, low);
    round.right[chunk] = nearest<1>(round, chunk, low);
}

__device__ void match_of(int block, Round &round) {
    int chunk = block * THREADS + threadIdx.x, items = 0, maps = 0, all_items, all_maps;
    if (chunk < round.chunks) count_chunk(round, chunk, &items, &maps);
    int items_before = sum_before<THREADS>(items, &all_items);
    int maps_before = sum_before<THREADS>(maps, &all_maps);
    if (chunk < round.chunks) round.place[chunk] = items_before | maps_before << 16;
    if (threadIdx.x == 0) round.items[block] = all_items, round.maps[block] = all_maps;
}

// Where each block writes, by all blocks that run; how long the next text is, and how many maps there
// are then.
template <int N> __device__ int add_up_items(Round &round, int *maps_in_use) {
    int blocks = ceil_div(round.chunks, THREADS), each = ceil_div(blocks, N);
    int first = at_most(threadIdx.x * each, blocks), last = at_most(first + each, blocks);
    int items = 0, maps = 0, all_items, all_maps;
#pragma unroll 1
    for (int i = first; i < last; i++) items += round.items[i], maps += round.maps[i];
    items = sum_before<N>(items, &all_items);
    maps = sum_before<N>(maps, &all_maps) + *maps_in_use;
#pragma unroll 1
    for (int i = first; i < last; i++) {
        round.first_item[i] = items, round.first_map[i] = maps;
        items += round.items[i], maps += round.maps[i];
    }
    __syncthreads();
    *maps_in_use += all_maps;
    return all_items;
}
