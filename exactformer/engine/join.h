// Join: what the chunks of a block have left is reduced again, by fewer and fewer threads.
//
// What is left of neighbouring chunks is joined, then of pairs of them, of fours: the `)` of the right
// half close the `(` of the left half, the nearest first, and the tokens between go into the spans that
// they are in. Nothing moves: the tokens of a chunk are used up from their front, its `(` from their
// end. A join goes through no more than what disappears by it, and stops where that would take long:
// then the rest is left to maps. All of a block becomes a single unit, or a few.

// A set of the N threads, in shared memory, from which threads may take out different ones.
template <int N> struct Some {
    enum { LANES = N < 32 ? N : 32 };
    unsigned int word[N / LANES];

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

// What is left of a thread's chunk, by places in the stacks.
struct alignas(8) Remains {
    unsigned short front, ground, top;  // of tokens and `)`; their end, where `(` begin; where they end
    unsigned short offset;              // entries of the threads before, in the end
};
template <int N> struct Left {
    Remains of[N];
    Some<N> with_tokens, with_opens;
};

// What is left of threads [first, middle) and [middle, end), whose stacks are those of this piece. It
// stops where `most` spans are closed.
template <int N, class Entry, int STEP>
__device__ void join(Left<N> &left, const Reducer<Entry, STEP> &piece, int most, int first, int middle,
                     int end) {
    first = at_least(left.with_tokens.last(first, middle), first);  // `(` before these are not next to
    end = at_most(left.with_opens.first(middle, end) + 1, end);     // the tokens up to these `(`
    int opener = left.with_opens.last(first, middle), reader = left.with_tokens.first(middle, end);
    if (opener < first || reader == end) return;
    const Pair *table = piece.table;
    Entry *stacks = piece.stacks;
    Remains open = left.of[opener], read = left.of[reader];
    int top = open.top, at = read.front, ground = open.ground, last = read.ground;
    State state = table[stacks[top] * WIDTH + SPACE];  // the same state, and what it becomes
    unsigned int around = stacks[top - STEP], token = stacks[at], value = BAD;
    for (int closed = 0; closed < most * STEP;) {
        int before = top, stop = at_least(ground, top - (most * STEP - closed));
        while (top != stop && at != last) {
            unsigned int next = stacks[at + STEP];  // on its way meanwhile
            bool mapped = sizeof(Entry) == 4 && (token & MAPPED);
            unsigned int from = number_of(state) * WIDTH + token;
            if (token == CLOSE || mapped) {
                value = value_of(state);
                if (mapped) value = apply(piece.pool, token, value);
                from = around * WIDTH + value;
                top -= STEP;
                around = stacks[top - STEP];
            }
            state = table[from];
            token = next;
            at += STEP;
        }
        closed += before - top;
        if (top == ground) {
            left.of[opener].top = top;
            left.with_opens.take_out(opener);
            opener = left.with_opens.last(first, opener);
            if (opener < first) {  // what the last span became is not in any other
                at -= STEP;
                stacks[at] = (Entry)value;
                break;
            }
            open = left.of[opener];
            top = open.top, ground = open.ground, around = stacks[top - STEP];
            state = table[stacks[top] * WIDTH + value];
        }
        if (at == last) {
            left.of[reader].front = at;
            left.with_tokens.take_out(reader);
            reader = left.with_tokens.first(reader + 1, end);
            if (reader == end) break;
            read = left.of[reader];
            at = read.front, last = read.ground, token = stacks[at];
        }
    }
    if (opener >= first) left.of[opener].top = top, stacks[top] = (Entry)number_of(state);
    if (reader < end) left.of[reader].front = at;
}

// What is left of all chunks of a block: of this thread's.
template <int N, class Piece> __device__ void join_all(Left<N> &left, Piece &piece, int most) {
    int thread = threadIdx.x;
    piece.end();
    piece.shorten();
    unsigned short front = piece.bottom, ground = piece.ground, top = piece.top;
    left.of[thread] = {front, ground, top};
    left.with_tokens.fill(ground > front);
    left.with_opens.fill(top > ground);
    __syncthreads();
    for (int half = 1; half < N; half *= 2) {
        int first = thread * 2 * half;
        if (first < N) join(left, piece, most, first, first + half, first + 2 * half);
        __syncthreads();
    }
    piece.bottom = left.of[thread].front, piece.top = left.of[thread].top;
}
