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
    int *groups = round.low + round.bound, *blocks = groups + above(round.bound);
    int group = threadIdx.x * FAN;
    int least = 0x7fffffff;
    if (threadIdx.x < FAN) {
        for (int i = 0; i < FAN; i++) least = at_most(least, lows[group + i]);
        if (block * THREADS + group < round.chunks) groups[block * FAN + threadIdx.x] = least;
    }
    __syncthreads();
    if (threadIdx.x < FAN) lows[threadIdx.x] = least;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < FAN; i++) least = at_most(least, lows[i]);
        blocks[block] = least;
        round.rise[block] = rise;
    }
}

// Items, which first come to lie in the columns of the stacks: no stack is higher than what its
// thread has read.
__device__ void reduce_items_of(int block, Round &round, const Item *text, int length,
                                const Pair *table, const Byte *pool, void *room, Item *rests) {
    enum { STEP = Column<Item, THREADS>::STEP };
    Reducer<Item, STEP> reducer(table, pool, (Item *)room, Column<Item, THREADS>::of(threadIdx.x));
    int chunk = block * THREADS + threadIdx.x, closing = 0;
    size_t first = (size_t)block * THREADS * CHUNK;
    const int many = 16;  // loads on their way at the same time
    for (int start = threadIdx.x; start < THREADS * CHUNK; start += many * THREADS) {
        Item some[many];
#pragma unroll
        for (int k = 0; k < many; k++) {
            size_t at = first + start + k * THREADS;
            some[k] = at < length ? text[at] : SPACE;
        }
#pragma unroll
        for (int k = 0; k < many; k++) {
            int i = start + k * THREADS;
            ((Item *)room)[i % CHUNK * STEP + i / CHUNK] = some[k];
            if (!(some[k] & OPENED) && (some[k] & MAPPED)) prefetch(pool, some[k]);
        }
    }
    __syncthreads();
    if (chunk < round.chunks) {
        size_t start = (size_t)chunk * CHUNK;
        int count = start + CHUNK < length ? CHUNK : (int)(length - start);
        for (int i = 0; i < count; i++) {
            Item item = reducer.entry(i);
            reducer.take(item, item & OPENED, is_close(item), (Cell)(item & ~OPENED));
        }
    }
    __shared__ Left<THREADS> left;
    join_all(left, reducer, CHUNK / 2);  // short enough for combs, long enough for bushy trees
    if (chunk < round.chunks) {
        // What is left, and a bit for each `)`.
        size_t start = (size_t)chunk * CHUNK;
        int height = reducer.height(), floor = reducer.floor();
        unsigned int bits = 0;
        for (int i = 0; i < height; i++) {
            Item item = reducer.left(i);
            rests[start + i] = item;
            if (i < floor && is_close(item)) bits |= 1u << i % 32;
            if (i % 32 == 31 || i + 1 == height) {
                round.closes[chunk + (size_t)(i / 32) * round.bound] = bits;
                bits = 0;
            }
        }
        closing = reducer.closing();
        round.shape[chunk] = floor | closing << 8 | reducer.opening() << 16;
    }
    describe(round, block, closing, reducer.opening());
}
