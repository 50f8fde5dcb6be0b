// Large expressions of chosen shapes as token ids, their text, and their value by a plain stack
// machine over the algebra's tables. Shares nothing with the engine that it checks.
//
// A tree is written in the order of its text from a stack of tasks, so that depth costs no recursion.

#include <cstddef>
#include <cstdint>
#include <vector>

typedef uint8_t Byte;
typedef int64_t Count;

enum { OPEN, CLOSE, FIRST_VALUE };  // token ids, as in exactformer/domains/algebra.py

struct Random {  // xorshift64*
    uint64_t state;
    uint32_t next() {
        state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
        return uint32_t(state * 2685821657736338717ull >> 32);
    }
    uint64_t below(uint64_t n) {
        return n >> 32 ? ((uint64_t(next()) << 32 | next()) % n) : (uint64_t(next()) * n >> 32);
    }
    double unit() { return next() * (1.0 / 4294967296.0); }
};

// An algebra: operator o takes least[o] to most[o] operands.
struct Algebra {
    int values, operators;
    bool infix;
    const int *least, *most;
};

enum Shape { BALANCED, RANDOM, LEFT, RIGHT, ZIGZAG, UNIFORM };

// Of one node: how many leaves, or a token to write.
struct Task {
    Count leaves;  // 0: write `token`
    Byte token;
};

static Count part(Shape shape, Count leaves, int parts, Random &random) {
    Count spare = leaves - parts;  // each part has one leaf at least
    if (parts == 1) return leaves;
    switch (shape) {
        case BALANCED: return leaves / parts;
        case RANDOM: return 1 + random.below(spare + 1);
        case LEFT: return 1 + spare;
        case ZIGZAG: return random.next() & 1 ? 1 + spare : 1;
        default: return 1;
    }
}

// Three operators in four are the first one; it matters where others, such as products, hide errors.
static int choose(const Algebra &algebra, Random &random) {
    if (algebra.operators == 1 || random.next() & 3) return 0;
    return 1 + random.below(algebra.operators - 1);
}

// Writes at most `room` tokens and says how many there are.
extern "C" Count make_tree(int shape, Count leaves, int values, int operators, int infix,
                           const int *least, const int *most, int even, uint64_t seed, Byte *out,
                           Count room) {
    Algebra algebra{values, operators, bool(infix), least, most};
    Random random{seed * 0x9E3779B97F4A7C15ull + 1};
    std::vector<Task> tasks;
    Count length = 0;
    auto write = [&](Byte token) {
        if (length < room) out[length] = token;
        length++;
    };
    // A uniformly random binary tree in preorder: `inner` nodes are left for `due` subtrees.
    Count inner = leaves - 1, due = 1;
    auto is_leaf = [&](Count size) {
        if (shape != UNIFORM) return size == 1;
        double chance = double(inner) * double(due + 1) / (double(due) * (2.0 * inner + due - 1));
        bool leaf = inner == 0 || random.unit() >= chance;
        leaf ? due-- : (inner--, due++);
        return leaf;
    };
    tasks.push_back({leaves, 0});
    while (!tasks.empty()) {
        Task task = tasks.back();
        tasks.pop_back();
        if (task.leaves == 0) {
            write(task.token);
        } else if (is_leaf(task.leaves)) {
            write(Byte(FIRST_VALUE + random.below(values)));
        } else {
            int op, operands;
            do {
                op = even ? random.below(operators) : choose(algebra, random);
                operands = least[op] + random.below(most[op] - least[op] + 1);
            } while (operands > task.leaves || (shape == UNIFORM && operands != 2));
            Count sizes[16], left = task.leaves;
            for (int i = 0; i < operands; i++) {
                sizes[i] = shape == UNIFORM ? 2 : part(Shape(shape), left, operands - i, random);
                left -= sizes[i];
            }
            Byte symbol = Byte(FIRST_VALUE + values + op);
            write(OPEN);
            tasks.push_back({0, CLOSE});
            for (int i = operands; i-- > 0;) {
                tasks.push_back({sizes[i], 0});
                if (infix && i == operands - 1 && operands == 2) tasks.push_back({0, symbol});
            }
            if (!infix || operands == 1) write(symbol);
        }
    }
    return length;
}

// The value by definition: `tables[o]` for an operator on k operands starts at offsets[o * 16 + k].
extern "C" int evaluate(const Byte *ids, Count length, int values, const Byte *tables,
                        const Count *offsets) {
    std::vector<int> operators;  // of the open spans
    std::vector<int> counts;     // of their operands
    std::vector<Byte> operands;
    int op = -1, count = 0;
    for (Count i = 0; i < length; i++) {
        int token = ids[i];
        if (token == OPEN) {
            operators.push_back(op), counts.push_back(count);
            op = -1, count = 0;
        } else if (token == CLOSE) {
            Count place = 0;
            for (int k = 0; k < count; k++) place = place * values + operands[operands.size() - count + k];
            Byte value = tables[offsets[op * 16 + count] + place];
            operands.resize(operands.size() - count);
            operands.push_back(value);
            op = operators.back(), operators.pop_back();
            count = counts.back() + 1, counts.pop_back();
        } else if (token < FIRST_VALUE + values) {
            operands.push_back(Byte(token - FIRST_VALUE)), count++;
        } else {
            op = token - FIRST_VALUE - values;
        }
    }
    return operands.size() == 1 ? operands[0] : -1;
}

// Levels of operators in plain notation, from 1 for the loosest; 0 where one is not used like that.
struct Levels {
    const int *prefix, *binary, *left;  // of an operator; the last: whether its binary level groups from there
};

// Drops the pairs of parentheses that precedence makes superfluous, but for a share of them, and says how
// many tokens are left.
extern "C" Count bare(Byte *ids, Count length, int values, const int *prefix, const int *binary,
                      const int *left, double kept, uint64_t seed) {
    enum { DROPPED = 255, TIGHTEST = 1 << 20 };
    struct Operand {
        Count open, close;  // the same for a value
        int level;
    };
    struct Span {
        Count open;
        int op;
        Operand first, last;
        bool has_two;
    };
    Levels levels{prefix, binary, left};
    Random random{seed * 0x9E3779B97F4A7C15ull + 1};
    std::vector<Span> spans;
    auto drop = [&](const Operand &operand, bool superfluous) {
        if (!superfluous || operand.open == operand.close || random.unit() < kept) return;
        ids[operand.open] = ids[operand.close] = DROPPED;
    };
    spans.push_back({-1, 0, {-1, -1, 0}, {}, false});
    for (Count i = 0; i < length; i++) {
        int token = ids[i];
        Operand operand{i, i, TIGHTEST};
        if (token == OPEN) {
            spans.push_back({i, -1, {-1, -1, 0}, {}, false});
            continue;
        }
        if (token >= FIRST_VALUE + values) {
            spans.back().op = token - FIRST_VALUE - values;
            continue;
        }
        if (token == CLOSE) {
            Span span = spans.back();
            spans.pop_back();
            int level = span.has_two ? levels.binary[span.op] : levels.prefix[span.op];
            bool from_left = span.has_two && levels.left[span.op];
            drop(span.first, span.first.level >= level + (span.has_two && !from_left));
            if (span.has_two) drop(span.last, span.last.level >= level + from_left);
            operand = {span.open, i, level};
        }
        Span &around = spans.back();
        if (around.first.close > around.open) around.last = operand, around.has_two = true;
        else around.first = operand;
    }
    drop(spans[0].first, true);
    Count left_over = 0;
    for (Count i = 0; i < length; i++) {
        if (ids[i] != DROPPED) ids[left_over++] = ids[i];
    }
    return left_over;
}

// The text of tokens, each spelling of at most 7 bytes with its length in front, eight bytes each.
extern "C" Count spell(const Byte *ids, Count length, const Byte *spellings, int spaced, Byte *out) {
    Byte *to = out;
    for (Count i = 0; i < length; i++) {
        const Byte *spelling = spellings + 8 * ids[i];
        if (spaced && i) *to++ = ' ';
        for (int k = 1; k <= spelling[0]; k++) *to++ = spelling[k];
    }
    return to - out;
}
