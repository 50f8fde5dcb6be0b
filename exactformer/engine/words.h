// Words: token ids from a text whose tokens are not single bytes, with the tables of `Words` in
// tensor.py, which are made from the algebra's lexicon.
//
// A lexeme is a maximal run of word bytes, or of bytes that are neither word nor blank nor bracket, or
// one bracket. It is looked up whole, and an unknown one is BAD. A thread reads a PIECE of the text, in
// two halves of 32 bytes: where lexemes start is a bit for each byte, and so is where they may end.

enum { BLANK, WORD, MARK, ROUND, SQUARE };  // classes of bytes: see domains/lexicon.py, tensor.py
enum { PIECE = 64, LONGEST_WORD = 16 };     // bytes
enum { SMALL_LEXICON = 8 };                 // bits of the hash of one that shared memory holds

struct Spelling {
    unsigned int words[LONGEST_WORD / 4];  // the first byte is lowest; zero behind the last one
    unsigned int token, length, unused[2];
};

extern "C" __global__ void count_words(const Byte *text, long long bytes, const Byte *classes,
                                       uint2 *starts, uint2 *edges, int *counts, int *control) {
    __shared__ Byte kinds[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) kinds[i] = classes[i];
    __syncthreads();
    size_t piece = (size_t)blockIdx.x * THREADS + threadIdx.x, first = piece * PIECE;
    unsigned int start[2] = {0, 0}, blank[2] = {0, 0};
    int seen = 0, all;
    if (first < bytes) {
        int before = first ? kinds[text[first - 1]] : BLANK;
        auto look = [&](int i, int byte) {
            int kind = kinds[byte];
            bool starts_here = kind >= ROUND || (kind != BLANK && kind != before);
            start[i / 32] |= (unsigned int)starts_here << i % 32;
            blank[i / 32] |= (unsigned int)(kind == BLANK) << i % 32;
            seen |= 1 << kind;
            before = kind;
        };
        if (first + PIECE <= bytes) {
#pragma unroll
            for (int i = 0; i < PIECE; i += 16) {
                uint4 some = *(const uint4 *)(text + first + i);
                unsigned int words[4] = {some.x, some.y, some.z, some.w};
#pragma unroll
                for (int k = 0; k < 16; k++) look(i + k, words[k / 4] >> 8 * (k % 4) & 255);
            }
        } else {
#pragma unroll
            for (int i = 0; i < PIECE; i++) {  // the text ends as if a blank came next
                if (first + i < bytes) look(i, text[first + i]);
                else blank[i / 32] |= 1u << i % 32;
            }
        }
        starts[piece] = {start[0], start[1]};
        edges[piece] = {start[0] | blank[0], start[1] | blank[1]};
        if (seen >> ROUND & ~control[BRACKETS]) atomicOr(control + BRACKETS, seen >> ROUND);
    }
    sum_before<THREADS>(__popc(start[0]) + __popc(start[1]), &all);
    if (threadIdx.x == 0) counts[blockIdx.x] = all;
}

extern "C" __global__ void word_spine(int *counts, long long blocks, int *control) {
    int each = ceil_div((int)blocks, SPINE), all, count = 0;
    int first = at_most(threadIdx.x * each, (int)blocks), last = at_most(first + each, (int)blocks);
    for (int i = first; i < last; i++) count += counts[i];
    count = sum_before<SPINE>(count, &all);
    for (int i = first; i < last; i++) {
        int here = counts[i];
        counts[i] = count;
        count += here;
    }
    if (threadIdx.x == 0) control[LENGTH] = all;
}

extern "C" __global__ void read_words(const Byte *text, long long bytes, const uint2 *starts,
                                      const uint2 *edges, const int *counts,
                                      const Spelling *lexicon, long long bits, long long factor,
                                      Byte *tokens) {
    const int rows = PIECE / 4;
    size_t piece = (size_t)blockIdx.x * THREADS + threadIdx.x, first = piece * PIECE;
    unsigned int *column = (unsigned int *)shared_memory + threadIdx.x;  // the piece, a word a row
    Byte *ready = (Byte *)shared_memory + PIECE * THREADS;  // the block's tokens, to write at once
    Spelling *nearby = (Spelling *)(ready + PIECE * THREADS);
    if (bits <= SMALL_LEXICON) {
        for (int i = threadIdx.x; i < 1 << bits; i += THREADS) nearby[i] = lexicon[i];
        lexicon = nearby;
    }
    for (int i = 0; i < PIECE && first + i < bytes; i += 16) {
        unsigned int *to = column + i / 4 * THREADS;
        if (first + i + 16 <= bytes) {
            uint4 some = *(const uint4 *)(text + first + i);
            to[0] = some.x, to[THREADS] = some.y, to[2 * THREADS] = some.z, to[3 * THREADS] = some.w;
        } else {
            for (int k = 0; first + i + k < bytes; k++) {
                ((Byte *)(to + k / 4 * THREADS))[k % 4] = text[first + i + k];
            }
        }
    }
    unsigned int start[2] = {0, 0}, edge[3] = {1, 1, 1};
    if (first < bytes) {
        start[0] = starts[piece].x, start[1] = starts[piece].y;
        edge[0] = edges[piece].x, edge[1] = edges[piece].y;
        if (first + PIECE < bytes) edge[2] = edges[piece + 1].x;
    }
    int all, before = sum_before<THREADS>(__popc(start[0]) + __popc(start[1]), &all);
    Byte *to = ready + before;
    // A word of the text, counted from the piece's first; it may lie in a later piece.
    auto word = [&](int w) {
        int further = w / rows;
        if (threadIdx.x + further < THREADS) return column[w % rows * THREADS + further];
        unsigned int some = 0;
        for (int k = 0; k < 4 && first + 4 * w + k < bytes; k++) {
            some |= text[first + 4 * w + k] << 8 * k;
        }
        return some;
    };
    // Four bytes from i on, of which `count` are wanted; the others are zero.
    auto four_bytes = [&](int i, int count) {
        int shift = i % 4 * 8;
        unsigned int low = word(i / 4), high = shift + 8 * count > 32 ? word(i / 4 + 1) : 0;
        unsigned int some = __funnelshift_r(low, high, shift);
        return count < 4 ? some & ((1u << 8 * count) - 1) : some;
    };
#pragma unroll
    for (int half = 0; half < 2; half++) {
        while (start[half]) {
            int i = __ffs(start[half]) - 1;
            start[half] &= start[half] - 1;
            unsigned int rest = edge[half] >> i >> 1;  // of this half; else it ends in the next
            int length = rest ? __ffs(rest) : 31 - i + __ffs(edge[half + 1]);
            if (!rest && !edge[half + 1]) length = LONGEST_WORD + 1;
            int token = BAD;
            if (length <= LONGEST_WORD) {
                unsigned int words[LONGEST_WORD / 4] = {four_bytes(half * 32 + i, at_most(length, 4))};
                unsigned int hash = words[0];
                bool same = true;
                if (length > 4) {
#pragma unroll
                    for (int w = 1; w < LONGEST_WORD / 4; w++) {
                        int left = at_most(length - 4 * w, 4);
                        words[w] = left > 0 ? four_bytes(half * 32 + i + 4 * w, left) : 0;
                        hash = hash * 31 + words[w];
                    }
                }
                const Spelling &found = lexicon[hash * (unsigned int)factor >> (32 - bits)];
                if (length > 4) {
#pragma unroll
                    for (int w = 1; w < LONGEST_WORD / 4; w++) same &= found.words[w] == words[w];
                }
                if (same && found.words[0] == words[0] && found.length == length) token = found.token;
            }
            *to++ = (Byte)token;
        }
    }
    __syncthreads();
    tokens += counts[blockIdx.x];
    for (int i = threadIdx.x; i < all; i += THREADS) tokens[i] = ready[i];
}
