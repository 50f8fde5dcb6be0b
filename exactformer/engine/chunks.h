// What a round knows of its chunks and blocks, and the search between them.

// What a round knows of its chunks and blocks, all in one array, laid out for `bound` chunks.
struct Round {
    unsigned int *shape;   // of a chunk: entries before the opening ones | `)` << 8 | `(` << 16
    unsigned int *place;   // of a chunk, in its block's output: items before it | maps before it << 16
    unsigned int *closes;  // of a chunk: a bit for each entry, set for `)`; words lie `bound` apart
    unsigned int *firsts;  // of a chunk: those of them that are innermost in a segment, likewise
    int *inner;            // of a chunk's segments of `)`: the entry of the innermost `(`; as far apart
    unsigned int *kept;    // of a chunk's segments of `(`: the level that each leaves, a byte each
    int *left, *right;     // of a chunk: the nearest chunks that go deeper down than it does
    int *depth;            // of a block: at its start
    int *rise, *least;     // of a block, from its start: how much deeper it ends; its least depth
    int *items, *maps;     // of a block: how many it adds to the next text, and to the pool of maps
    int *first_item;       // of a block, in the next text
    int *first_map;        // of a block, in the pool of maps
    int *low;              // the tree of least depths; two levels count from their block's start
    int bound, chunks;

    // `bound` is a multiple of THREADS, so that each array is aligned.
    __device__ Round(int *memory, int bound_, int chunks_) : bound(bound_), chunks(chunks_) {
        int blocks = ceil_div(bound / THREADS, 4) * 4;
        shape = (unsigned int *)memory, place = shape + bound, closes = place + bound;
        size_t bits = (size_t)bound * ceil_div(CHUNK, 32);
        firsts = closes + bits, inner = (int *)(firsts + bits);
        kept = (unsigned int *)(inner + (size_t)bound * NOTED), left = (int *)(kept + bound);
        right = left + bound, depth = right + bound;
        rise = depth + blocks, least = rise + blocks, items = least + blocks, maps = items + blocks;
        first_item = maps + blocks, first_map = first_item + blocks;
        low = first_map + blocks;
    }
    __device__ int lowest(int chunk) const { return low[chunk] + depth[chunk / THREADS]; }
    __device__ int before(int chunk) const { return shape[chunk] & 255; }
    __device__ int closing(int chunk) const { return shape[chunk] >> 8 & 255; }
    __device__ int opening(int chunk) const { return shape[chunk] >> 16 & 255; }
};

// The tree of least depths. A level's nodes come in groups of FAN, padded so that groups are whole;
// the node of a group is on the level above.
__device__ constexpr int above(int size) { return ceil_div(ceil_div(size, FAN), FAN) * FAN; }

// Which nodes of a group are below `level`, a bit each.
__device__ inline unsigned int below(const Round &round, const int *low, int height, int group,
                                     int count, int level) {
    // Blocks count from their own start on the two lowest levels.
    if (height == 0) level -= round.depth[group / FAN];
    if (height == 1) level -= round.depth[group];
    unsigned int bits = 0;
    const int4 *from = (const int4 *)(low + (size_t)group * FAN);
#pragma unroll
    for (int k = 0; k < FAN; k += 4) {
        int4 some = from[k / 4];
        bits |= (some.x < level) << k | (some.y < level) << (k + 1);
        bits |= (some.z < level) << (k + 2) | (some.w < level) << (k + 3);
    }
    int nodes = count - group * FAN;
    return nodes < FAN ? bits & ((1u << nodes) - 1) : bits;
}

// The nearest chunk to one side whose least depth is below `level`, or -1: up the tree to the first
// group that has such a node on that side, and down again.
template <int SIDE> __device__ int nearest(const Round &round, int chunk, int level) {
    const int *low = round.low;
    int size = round.bound, count = round.chunks, height = 0, at = chunk;
    unsigned int bits;
    auto pick = [&]() { return SIDE < 0 ? 31 - __clz(bits) : __ffs(bits) - 1; };
#pragma unroll 1
    for (;;) {
        unsigned int own = 1u << at % FAN;
        bits = below(round, low, height, at / FAN, count, level);
        bits &= SIDE < 0 ? own - 1 : ~(2 * own - 1);
        at /= FAN;
        if (bits) break;
        if (count <= FAN) return -1;
        low += size, size = above(size), count = ceil_div(count, FAN), height++;
    }
    at = at * FAN + pick();
#pragma unroll 1
    while (height > 0) {
        height--;
        size = round.bound, count = round.chunks, low = round.low;
#pragma unroll 1
        for (int i = 0; i < height; i++) low += size, size = above(size), count = ceil_div(count, FAN);
        bits = below(round, low, height, at, count, level);
        at = at * FAN + pick();
    }
    return at;
}
