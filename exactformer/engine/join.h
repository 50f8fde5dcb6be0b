// Join: what the chunks of a tile have left is reduced again, by fewer and fewer threads.
//
// What is left of neighbouring chunks is joined, then of pairs of them, of fours: the `)` of the right
// half close the `(` of the left half, the nearest first, and the tokens between go into the spans that
// they are in. Nothing moves: the tokens of a chunk are used up from their front, its `(` from their
// end. A join goes through no more than what disappears by it. All of a tile becomes a single unit,
// unless a join would take too long: MOST is so many that no tile has more than MOST_UNITS units.

typedef Reducer<Cell, Column<Cell, TEAM>::STEP> Chunk;
enum { TILE = TEAM * FIRST_CHUNK };
enum { MOST_UNITS = 16, MOST = TILE / MOST_UNITS };  // only 8 + 4 + 2 + 1 joins have as many `)`
static_assert(TEAM % MOST_UNITS == 0, "halves down to the joins of more than MOST spans");

// A set of threads, in shared memory, from which threads may take out different ones.
struct Some {
    enum { LANES = TEAM < 32 ? TEAM : 32 };
    unsigned int word[TEAM / LANES];

    __device__ void fill(bool member) {
        unsigned int bits = __ballot_sync(~0u, member);
        if (threadIdx.x % LANES == 0) word[threadIdx.x / LANES] = bits;
    }
    __device__ void take_out(int thread) {
        atomicAnd(word + thread / LANES, ~(1u << thread % LANES));
    }
    // The last one in [first, end), or first - 1.
    __device__ int last(int first, int end) const {
        while (end > first) {
            int start = (end - 1) / LANES * LANES;
            unsigned int bits = word[start / LANES] & ~0u >> (31 - (end - 1 - start));
            if (bits) return at_least(start + 31 - __clz(bits), first - 1);
            end = start;
        }
        return first - 1;
    }
    // The first one in [first, end), or end.
    __device__ int first(int first, int end) const {
        while (first < end) {
            int start = first / LANES * LANES;
            unsigned int bits = word[start / LANES] & ~0u << (first - start);
            if (bits) return at_most(start + __ffs(bits) - 1, end);
            first = start + LANES;
        }
        return end;
    }
};

// What is left of each thread's chunk, by places in the stacks.
struct Left {
    unsigned short front[TEAM], ground[TEAM], top[TEAM];  // of tokens and `)`; their end; of `(`
    Some with_tokens, with_opens;
};
static_assert((FIRST_CHUNK + 1) * Column<Cell, TEAM>::STEP <= 1 << 16, "places take 16 bits");

// What is left of threads [first, middle) and [middle, end).
__device__ void join(Left &left, const Cell *table, Cell *stacks, int first, int middle, int end) {
    enum { STEP = Column<Cell, TEAM>::STEP };
    first = at_least(left.with_tokens.last(first, middle), first);  // `(` before these are not next to
    end = at_most(left.with_opens.first(middle, end) + 1, end);     // the tokens up to these `(`
    int opener = left.with_opens.last(first, middle), reader = left.with_tokens.first(middle, end);
    if (opener < first || reader == end) return;
    int top = left.top[opener], ground = left.ground[opener];
    int at = left.front[reader], behind = left.ground[reader];
    unsigned int state = stacks[top], token = stacks[at];
    for (int closed = 0; closed < MOST;) {
        unsigned int next = stacks[at + STEP];  // on its way meanwhile
        unsigned int found = table[state * WIDTH + token];
        if (token == CLOSE) {
            closed++;
            top -= STEP;
            if (top == ground) {
                left.top[opener] = top;
                left.with_opens.take_out(opener);
                opener = left.with_opens.last(first, opener);
                if (opener < first) {  // what the span becomes is not in any other
                    stacks[at] = (Cell)found;
                    break;
                }
                top = left.top[opener], ground = left.ground[opener];
            }
            found = table[stacks[top] * WIDTH + found];
        }
        state = found;
        token = next;
        at += STEP;
        if (at == behind) {
            left.front[reader] = at;
            left.with_tokens.take_out(reader);
            reader = left.with_tokens.first(reader + 1, end);
            if (reader == end) break;
            at = left.front[reader], behind = left.ground[reader];
            token = stacks[at];
        }
    }
    if (opener >= first) left.top[opener] = top, stacks[top] = (Cell)state;
    if (reader < end) left.front[reader] = at;
}

// What is left of all chunks of a tile, by this thread's.
__device__ void join_all(Left &left, Chunk &chunk) {
    int thread = threadIdx.x;
    chunk.end();
    left.front[thread] = chunk.bottom, left.ground[thread] = chunk.ground, left.top[thread] = chunk.top;
    left.with_tokens.fill(chunk.ground > chunk.bottom);
    left.with_opens.fill(chunk.top > chunk.ground);
    __syncthreads();
    for (int half = 1; half < TEAM; half *= 2) {
        int first = thread * 2 * half;
        if (first < TEAM) {
            join(left, chunk.table, chunk.stacks, first, first + half, first + 2 * half);
        }
        __syncthreads();
    }
    chunk.bottom = left.front[thread], chunk.top = left.top[thread];
}
