// Reduce: each thread evaluates all spans that lie wholly inside its chunk, and leaves the rest.

// One thread's stack is a column of shared memory. The columns of a warp lie in different banks, so
// that its threads never wait for each other, whatever the heights of their stacks.
template <class Entry> struct Column {
    enum { SHARE = 4 / sizeof(Entry), SPREAD = THREADS % (32 * SHARE) == 0 };
    enum { STEP = sizeof(Entry) == 4 ? THREADS + 1 : THREADS };  // odd: rows can be filled at once
    static __device__ int of(int thread) {
        int warp = thread / 32, lane = thread % 32;
        return SPREAD ? (warp / SHARE * 32 + lane) * SHARE + warp % SHARE : thread;
    }
};

template <class Entry> struct Reducer {
    const Cell *table;
    const Byte *pool;
    Entry *stack;       // entry i is stack[i * STEP]
    int height, floor;  // entries, and those of them that no `(` of this chunk comes before
    Cell state;         // of the innermost span that was opened in this chunk
    enum { STEP = Column<Entry>::STEP };

    __device__ Reducer(const Cell *table_, const Byte *pool_, void *room)
        : table(table_), pool(pool_), stack((Entry *)room + Column<Entry>::of(threadIdx.x)),
          height(0), floor(0), state(0) {}

    // `item` is a token, or what stands for `(` or `)`; an opening one goes on with `inside`.
    __device__ inline void take(Item item, bool opens, bool closes, Cell inside) {
        if (closes && height > floor) {
            Item token = table[state * WIDTH + CLOSE];
            if (item & MAPPED) token = apply(pool, item, token);
            state = (Cell)stack[--height * STEP];
            item = token;
        }
        if (opens) {
            stack[height++ * STEP] = (Entry)state;
            state = inside;
        } else if (height > floor) {
            state = table[state * WIDTH + item];
        } else if (item != SPACE) {
            stack[height++ * STEP] = (Entry)item;
            floor++;
        }
    }
    // What is left. The entry of a `(` in the stack is the state around it; in a rest, inside it.
    __device__ inline Entry left(int i) const {
        return i < floor ? stack[i * STEP] : i + 1 < height ? stack[(i + 1) * STEP] : (Entry)state;
    }
    // Leaves it in the chunk's rest; counts `)` and notes where they are.
    __device__ int write(Entry *rest, unsigned int *closes, int apart) const {
        union {
            uint4 whole;
            Entry entry[16 / sizeof(Entry)];
        } some;
        const int many = 16 / sizeof(Entry);
        int closing = 0;
        unsigned int bits = 0;
        for (int i = 0; i < height; i += many) {
#pragma unroll
            for (int k = 0; k < many; k++) {
                Entry entry = i + k < height ? left(i + k) : 0;
                some.entry[k] = entry;
                if (i + k < floor && is_close(entry)) closing++, bits |= 1u << (i + k) % 32;
            }
            *(uint4 *)(rest + i) = some.whole;
            if ((i + many) % 32 == 0 || i + many >= height) {
                closes[(size_t)(i / 32) * apart] = bits;
                bits = 0;
            }
        }
        return closing;
    }
};

// Counts the chunk's parentheses and adds its least depth to the tree.
__device__ void describe(Round &round, int block, int before, int closing, int opening) {
    __shared__ int lows[THREADS];
    int chunk = block * THREADS + threadIdx.x, rise;
    bool exists = chunk < round.chunks;
    int low = sum_before<THREADS>(opening - closing, &rise) - closing;
    lows[threadIdx.x] = exists ? low : 0x7fffffff;
    if (exists) {
        round.shape[chunk] = before | closing << 8 | opening << 16;
        round.low[chunk] = low;
    }
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

// Bytes of the text, or token ids: `tokens` says what each byte is.
__device__ void reduce_bytes_of(int block, Round &round, const Byte *text, int length,
                                const Cell *table, const Byte *tokens, void *room, Cell *rests) {
    Reducer<Cell> reducer(table, 0, room);
    int chunk = block * THREADS + threadIdx.x, closing = 0;
    if (chunk < round.chunks) {
        size_t start = (size_t)chunk * FIRST_CHUNK, at = start;
        size_t end = start + FIRST_CHUNK < length ? start + FIRST_CHUNK : length;
        for (; at + 16 <= end; at += 16) {
            uint4 some = *(const uint4 *)(text + at);
            unsigned int words[4] = {some.x, some.y, some.z, some.w};
            Byte read[16];  // all before the first is used, since they do not wait for each other
#pragma unroll
            for (int k = 0; k < 16; k++) read[k] = tokens[words[k / 4] >> 8 * (k % 4) & 255];
#pragma unroll
            for (int k = 0; k < 16; k++) {
                reducer.take(read[k], read[k] == OPEN, read[k] == CLOSE, START);
            }
        }
        for (; at < end; at++) {
            Item token = tokens[text[at]];
            reducer.take(token, token == OPEN, token == CLOSE, START);
        }
        closing = reducer.write(rests + start, round.closes + chunk, round.bound);
    }
    describe(round, block, reducer.floor, closing, reducer.height - reducer.floor);
}

// Items, which first come to lie in the columns of the stacks: no stack is higher than what its
// thread has read.
__device__ void reduce_items_of(int block, Round &round, const Item *text, int length,
                                const Cell *table, const Byte *pool, void *room, Item *rests) {
    Reducer<Item> reducer(table, pool, room);
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
            ((Item *)room)[i % CHUNK * Column<Item>::STEP + i / CHUNK] = some[k];
            if (!(some[k] & OPENED) && (some[k] & MAPPED)) prefetch(pool, some[k]);
        }
    }
    __syncthreads();
    if (chunk < round.chunks) {
        size_t start = (size_t)chunk * CHUNK;
        int count = start + CHUNK < length ? CHUNK : (int)(length - start);
        for (int i = 0; i < count; i++) {
            Item item = reducer.stack[i * Column<Item>::STEP];
            reducer.take(item, item & OPENED, is_close(item), (Cell)(item & ~OPENED));
        }
        closing = reducer.write(rests + start, round.closes + chunk, round.bound);
    }
    describe(round, block, reducer.floor, closing, reducer.height - reducer.floor);
}
