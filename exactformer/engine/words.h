// Words: token ids from a text whose tokens are not single bytes, with the tables of `Words` in
// tensor.py, which are made from the algebra's lexicon.
//
// A lexeme is a maximal run of word bytes, or one bracket, or a mark of one byte that is part of no longer
// one, or a maximal run of other bytes. A thread reads those that begin in its chunk, each to its end, by an automaton whose
// NODES are the beginnings of spellings, one for blanks, and one each for unknown words and marks.
//
// Where rests overwrite the text, a tile may be lost before its neighbours are read. What they need of
// it, one byte before their own and a spelling behind, is copied first: the EDGE around its beginning,
// half of it before, which is no less than any spelling has.

enum { BLANKS, UNKNOWN_WORD, UNKNOWN_MARK };  // nodes
static_assert(FIRST_CHUNK >= EDGE / 2, "a spelling ends in the next chunk");

__device__ inline const Byte *edge_of(const Byte *edges, int tile) {
    return edges + tile * EDGE + EDGE / 2;
}

// A step of it has all that a byte leads to, from the lowest bits: the next node, a kind of bracket, and
// the token of the lexeme that ended before the byte, or all ones.
template <class Step> struct Lexer {
    enum { NODE_BITS = 4 * sizeof(Step), TOKEN_AT = NODE_BITS + 2 };
    enum { SELDOM = 256 };  // bytes that need not be near: `before`
    const Byte *before;     // of a byte: the node that it leaves to a chunk that it is not in
    const Byte *columns;    // of a byte
    const Step *next;       // by node and column
    const Byte *tokens;     // of a node, if its lexeme ends there
    int width;

    __device__ Lexer(const uint4 *memory, const uint4 *near, int nodes, int width_)
        : before((const Byte *)memory), columns((const Byte *)near), next((const Step *)(columns + 256)),
          tokens((const Byte *)(next + nodes * width_)), width(width_) {}
    __device__ Step step(int node, int column) const { return next[node * width + column]; }
    static __device__ int node(Step step) { return step & ((1 << NODE_BITS) - 1); }
    static __device__ int brackets(unsigned int steps) { return steps >> NODE_BITS & 3; }
    static __device__ bool ended(Step step) { return step < (Step)(~0u << TOKEN_AT); }
    static __device__ Cell token(Step step) { return (Cell)(step >> TOKEN_AT); }
};

// The tokens that begin in a thread's chunk, put in the rows of its stack, from where it takes them:
// no stack is higher than what was read. Returns the kinds of brackets, a bit each.
template <class Step>
__device__ inline int reduce_words_of(Chunk &reducer, int start, const Byte *text, const Byte *edges,
                                      int length, const Lexer<Step> &lexer) {
    if (start >= length) return 0;
    enum { STEP = Column<Cell, TEAM>::STEP };
    int count = at_most(length - start, (int)FIRST_CHUNK), bottom = reducer.bottom;
    const Byte *bytes = text + start, *before = bytes, *behind = bytes + count;
    if (threadIdx.x == 0) before = edge_of(edges, start / TILE);
    if (threadIdx.x == TEAM - 1) behind = edge_of(edges, start / TILE + 1);
    int node = start ? lexer.before[before[-1]] : BLANKS;
    int row = node == BLANKS ? bottom : bottom - STEP;  // below is room for one of the chunk before
    unsigned int seen = 0;
    each_number(bytes, count, lexer.columns, [&](Byte column) {
        Step next = lexer.step(node, column);
        seen |= next;
        node = lexer.node(next);
        if (lexer.ended(next)) {
            reducer.stacks[row] = lexer.token(next);
            row += STEP;
        }
    });
    if (node != BLANKS && row >= bottom) {
        for (int more = length - start - count; more > 0 && node > UNKNOWN_MARK; more--) {
            Step next = lexer.step(node, lexer.columns[*behind++]);
            if (lexer.ended(next)) break;
            node = lexer.node(next);
        }
        reducer.stacks[row] = lexer.tokens[node];
        row += STEP;
    }
    unsigned int token = reducer.stacks[bottom];
    for (int i = bottom; i < row; i += STEP) {
        unsigned int next = reducer.stacks[i + STEP];  // on its way meanwhile
        reducer.take(token);
        token = next;
    }
    return lexer.brackets(seen);
}
