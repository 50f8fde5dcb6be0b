// Words: token ids from a text whose tokens are not single bytes, with the tables of `Words` in
// tensor.py, which are made from the algebra's lexicon.
//
// A lexeme is a maximal run of word bytes, or of bytes that are neither word nor blank nor bracket, or
// one bracket. A thread reads those that begin in its chunk, each to its end, by an automaton whose
// NODES are the beginnings of spellings, one for blanks, and one each for unknown words and marks.

enum { BLANKS, UNKNOWN_WORD, UNKNOWN_MARK };  // nodes
enum { NODE = 0x1fff, ENDED = 0x2000, BRACKET_BITS = 14 };  // in `next`

struct Lexer {
    typedef unsigned short Step;
    const Byte *columns;  // of a byte
    const Byte *before;   // of a byte: the node that it leaves to a chunk that it is not in
    const Step *next;     // by node and column: the next node | kind of bracket | a lexeme ended before
    const Byte *tokens;   // of a node
    int width;

    __device__ Lexer(const uint4 *memory, int nodes, int width_)
        : columns((const Byte *)memory), before(columns + 256), next((const Step *)(before + 256)),
          tokens((const Byte *)(next + nodes * width_)), width(width_) {}
    __device__ unsigned int step(int node, int column) const { return next[node * width + column]; }
};

// The tokens that begin in a thread's chunk, put in the rows of its stack, from where it takes them:
// no stack is higher than what was read. Returns the kinds of brackets, a bit each.
__device__ inline int reduce_words_of(Chunk &reducer, int start, const Byte *text, int length,
                                      const Lexer &lexer) {
    if (start >= length) return 0;
    enum { STEP = Column<Cell, TEAM>::STEP };
    int count = at_most(length - start, (int)FIRST_CHUNK), bottom = reducer.bottom;
    int node = start ? lexer.before[text[start - 1]] : BLANKS, seen = 0;
    int row = node == BLANKS ? bottom : bottom - STEP;  // below is room for one of the chunk before
    unsigned int ahead = lexer.tokens[node];            // if its lexeme ends here
    each_number(text + start, count, lexer.columns, [&](Byte column) {
        unsigned int next = lexer.step(node, column), token = ahead;
        seen |= next;
        node = next & NODE;
        ahead = lexer.tokens[node];  // on its way before it is needed
        if (next & ENDED) {
            reducer.stacks[row] = (Cell)token;
            row += STEP;
        }
    });
    if (node != BLANKS && row >= bottom) {
        for (int at = start + count; at < length && node > UNKNOWN_MARK; at++) {
            unsigned int next = lexer.step(node, lexer.columns[text[at]]);
            if (next & ENDED) break;
            node = next & NODE;
        }
        reducer.stacks[row] = lexer.tokens[node];
        row += STEP;
    }
    Cell token = reducer.stacks[bottom];
    for (int i = bottom; i < row; i += STEP) {
        Cell next = reducer.stacks[i + STEP];  // on its way meanwhile
        reducer.take(token);
        token = next;
    }
    return seen >> BRACKET_BITS & 3;
}
