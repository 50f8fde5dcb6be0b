// The rounds after the first: a thread reduces a chunk of items, and those of a block are joined.

// Counts the parentheses of a chunk or unit and adds its least depth to the tree.
__device__ void describe(Round &round, int block, int closing, int opening) {
    __shared__ int lows[THREADS];
    int chunk = block * THREADS + threadIdx.x, rise;
    bool exists = chunk < round.chunks;
    int low = sum_before<THREADS>(opening - closing, &rise) - closing;
    lows[threadIdx.x] = exists ? low : 0x7fffffff;
    if (exists) round.low[chunk] = low;
    __syncthreads();
    int *groups = round.low + round.bound, group = threadIdx.x * FAN, least = 0x7fffffff;
    if (threadIdx.x < FAN) {
        for (int i = 0; i < FAN; i++) least = at_most(least, lows[group + i]);
        if (block * THREADS + group < round.chunks) groups[block * FAN + threadIdx.x] = least;
    }
    __syncthreads();
    if (threadIdx.x < FAN) lows[threadIdx.x] = least;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < FAN; i++) least = at_most(least, lows[i]);
        round.least[block] = least;
        round.rise[block] = rise;
    }
}

// A text of no more than LAST items is joined to the end, from SHORT chunks.
enum { SHORT = CHUNK / 4 };
static_assert(LAST <= THREADS * SHORT, "by one block");
__device__ inline int chunk_size(int length) { return length <= LAST ? SHORT : CHUNK; }

// Items, which first come to lie in the columns of the stacks: no stack is higher than what its
// thread has read.
static_assert(CHUNK % 4 == 0, "entries of a rest are written and read four at a time");
__device__ void reduce_items_of(int block, Round &round, const Item *text, int length,
                                const Tables &tables, const Byte *pool, void *room, Item *rests) {
    enum { STEP = Column<Item, THREADS>::STEP };
    Reducer<Item, STEP> reducer(tables.runs, tables.next, pool, (Item *)room,
                                Column<Item, THREADS>::of(threadIdx.x));
    int chunk = block * THREADS + threadIdx.x, closing = 0, size = chunk_size(length);
    size_t first = (size_t)block * THREADS * size;
    const int many = 16;  // loads on their way at the same time
    for (int start = threadIdx.x; start < THREADS * size; start += many * THREADS) {
        Item some[many];
#pragma unroll
        for (int k = 0; k < many; k++) {
            size_t at = first + start + k * THREADS;
            some[k] = at < length ? text[at] : SPACE;
        }
#pragma unroll
        for (int k = 0; k < many; k++) {
            int i = start + k * THREADS, column = size == SHORT ? i / SHORT : i / CHUNK;
            if (column < THREADS) ((Item *)room)[(i - column * size) * STEP + column] = some[k];
            if (!(some[k] & OPENED) && (some[k] & MAPPED)) prefetch(pool, some[k]);
        }
    }
    __syncthreads();
    if (chunk < round.chunks) {
        size_t start = (size_t)chunk * size;
        int count = start + size < length ? size : (int)(length - start);
        for (int i = 0; i < count; i++) {
            Item item = reducer.entry(i);
            reducer.take(item, item & OPENED, is_close(item), (Cell)(item & ~OPENED));
        }
    }
    __shared__ Left<THREADS> left;
    join_all(left, reducer, size == SHORT ? (int)LAST : (int)JOINED);
    wait_for_copies();
    if (chunk < round.chunks) {
        // What is left, and a bit for each `)`.
        size_t start = (size_t)chunk * CHUNK;
        int height = reducer.height(), floor = reducer.floor();
        unsigned int bits = 0;
        for (int i = 0; i < height; i += 4) {  // at once: what threads write is far apart
            Item some[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                some[k] = reducer.left(at_most(i + k, height - 1));
                if (i + k < floor && is_close(some[k])) bits |= 1u << (i + k) % 32;
            }
            *(uint4 *)(rests + start + i) = {some[0], some[1], some[2], some[3]};
            if (i % 32 == 28 || i + 4 >= height) {
                round.closes[chunk + (size_t)(i / 32) * round.bound] = bits;
                closing += __popc(bits);
                bits = 0;
            }
        }
        round.shape[chunk] = floor | closing << 8 | reducer.opening() << 16;
    }
    describe(round, block, closing, reducer.opening());
}
