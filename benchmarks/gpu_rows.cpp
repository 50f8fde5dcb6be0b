// Short expressions, a line each, and their values by the stack machine of engine_trees.cpp.

#include <cstdlib>
#include <cstring>

#include "engine_trees.cpp"

// Writes `rows` lines of random trees of about this many tokens, and a byte for each: its value. Every
// 1000th line has lost its last parenthesis, and has the byte `bad` instead. Says how long the text is,
// and how many tokens it has. With levels, of plain notation, it has no superfluous parentheses.
extern "C" Count make_rows(Count rows, Count tokens, int values, int operators, int infix,
                           const int *least, const int *most, uint64_t seed, const Byte *tables,
                           const Count *offsets, const Byte *spellings, int spaced, Byte bad,
                           const int *levels, Byte *text, Byte *codes, Count *tokens_of_all) {
    Random random{seed * 0x9E3779B97F4A7C15ull + 1};
    std::vector<Byte> ids(4 * tokens);
    Byte *to = text;
    *tokens_of_all = 0;
    for (Count row = 0; row < rows; row++) {
        Count length;
        do {  // until it is as long as it should be
            Count leaves = tokens / 5 + 1 + random.below(levels ? tokens / 2 + 1 : tokens / 4);
            uint64_t tree = uint64_t(random.next()) << 32 | random.next();
            length = make_tree(RANDOM, leaves, values, operators, infix, least, most, 1, tree,
                               ids.data(), ids.size());
            if (length > Count(ids.size())) continue;
            codes[row] = Byte(evaluate(ids.data(), length, values, tables, offsets));
            const int *binary = levels + operators;
            if (levels) length = bare(ids.data(), length, values, levels, binary, binary + operators, 0, tree);
        } while (std::llabs(length - tokens) > tokens / 20);
        if (row % 1000 == 999) length--, codes[row] = bad;
        to += spell(ids.data(), length, spellings, spaced, to);
        *to++ = '\n';
        *tokens_of_all += length;
    }
    return to - text;
}
