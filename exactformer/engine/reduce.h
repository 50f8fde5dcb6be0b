// Reduce: each thread evaluates all spans that lie wholly inside its chunk, and leaves the rest.

// One thread's stack is a column of shared memory. The columns of a warp lie in different banks, so
// that its threads never wait for each other, whatever the heights of their stacks.
template <class Entry, int N> struct Column {
    enum { SHARE = 4 / sizeof(Entry), SPREAD = N % (32 * SHARE) == 0 };
    enum { STEP = sizeof(Entry) == 4 ? N + 1 : SPREAD ? N : N + 4 };  // odd: rows can be filled at once
    static __device__ int of(int thread) {
        int warp = thread / 32, lane = thread % 32;
        return SPREAD ? (warp / SHARE * 32 + lane) * SHARE + warp % SHARE : thread;
    }
};

// FLOOR is the state outside of all spans that were opened in the chunk, and all tokens lead back to it:
// what is read there, and what a span becomes that is closed there, is kept. The table tells of each
// state what the span becomes if it is closed there: so a `)` takes a single look-up as well, from the
// state around.
template <class Entry, int STEP> struct Reducer {
    Runs runs;
    const Pair *table;
    const Byte *pool;
    Entry *stacks;     // of all threads: entry i of this one is stacks[bottom + i * STEP]
    int bottom, top;   // where its stack begins, and ends,
    int ground;        // and, in the end, where the entries end that no `(` of it comes before
    State state;       // of the innermost span that was opened in this chunk
    bool outside;      // of all that were

    __device__ Reducer(const Runs &runs_, const Pair *table_, const Byte *pool_, Entry *stacks_,
                       int bottom_)
        : runs(runs_), table(table_), pool(pool_), stacks(stacks_), bottom(bottom_), top(bottom_), ground(bottom_),
          state(FLOOR), outside(true) {}

    // A token, or what stands for `(` with the state inside, or for `)` with a map.
    __device__ inline void take(Item item, bool opens, bool closes, unsigned int inside) {
        unsigned int row = opens ? inside : number_of(state);
        Item column = opens ? SPACE : closes ? CLOSE : item;  // white space changes nothing
        go_on(item, opens, closes, row * WIDTH + column);
    }
    // The same of plain tokens.
    __device__ inline void take(unsigned int token) {
        go_on(token, token == OPEN, token == CLOSE, number_of(state) * WIDTH + token);
    }
    // There are no branches: the threads of a warp read different things. So the state around the
    // innermost span is fetched in any case, which the compiler would not do; below the bottom there
    // is something to read as well. What becomes of the stack does not wait for the look-up.
    __device__ inline void go_on(Item item, bool opens, bool closes, unsigned int at) {
        unsigned int around = *(volatile Entry *)(stacks + top - STEP);
        Item entry = item;
        if (opens) entry = sizeof(Entry) == sizeof(Cell) ? (Item)state : number_of(state);
        bool closed = closes & !outside;
        if (closed) {
            entry = value_of(state);
            if (sizeof(Entry) == 4 && (item & MAPPED)) entry = apply(pool, item, entry);
            at = around * WIDTH + entry;
            top -= STEP;
        }
        state = table[at];
        outside = !opens & (outside | (closed & (around == FLOOR)));
        if (opens | (outside & (item != SPACE))) {
            stacks[top] = (Entry)entry;
            top += STEP;
        }
    }
    // What is left: first all that is no state, then the states that belong to `(`. The entry of a `(`
    // in the stack is the state around it; in a rest, inside it. The last of these comes to lie behind
    // the stack, where there is a row more than it can be high.
    __device__ void end() {
        int low = 0, high = height();
        while (low < high) {
            int middle = (low + high) / 2;
            Entry found = entry(middle);
            if (found < FIRST_STATE || (sizeof(Entry) == 4 && (found & MAPPED))) low = middle + 1;
            else high = middle;
        }
        ground = bottom + low * STEP;
        stacks[top] = (Entry)number_of(state);
    }
    // Where spans may be of any length, each run of tokens that is left is replaced by a shortest one that
    // does the same. From the last one on: what is left moves up, to where the `(` begin.
    __device__ void shorten() {
#if RUNS
        int to = ground;
        unsigned int run = 0;
        auto end_run = [&]() {
            const Byte *shortest = (const Byte *)(runs.shortest + run);
            for (int i = shortest[15]; i-- > 0;) to -= STEP, stacks[to] = shortest[i];
            run = 0;
        };
        for (int from = ground; from != bottom;) {
            from -= STEP;
            Entry entry = stacks[from];
            if (is_close(entry)) {
                end_run();
                to -= STEP, stacks[to] = entry;
            } else {
                run = runs.before[run * WIDTH + entry];
            }
        }
        end_run();
        bottom = to;
#endif
    }
    __device__ Entry &entry(int i) const { return stacks[bottom + i * STEP]; }
    __device__ int height() const { return (top - bottom) / STEP; }
    __device__ int floor() const { return (ground - bottom) / STEP; }
    __device__ int opening() const { return (top - ground) / STEP; }
    __device__ inline Entry &left(int i) const { return entry(i + (i >= floor())); }
};
