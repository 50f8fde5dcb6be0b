// The first round. A block takes a TILE of the text, and each of its threads a chunk of it.
//
// What the chunks leave is reduced again by fewer threads, and again, as long as that helps: of a
// bushy tree only the parentheses are left that have their partners in other tiles. What is left
// then is cut into UNITS of the form  a ) a ) ... a ) a ( s ( s ... ( s . Mostly that is one for a
// tile: of the side of a comb, where nothing can be reduced, it is one as well.

typedef Reducer<Cell, Column<Cell, TEAM>::STEP> Chunk;
enum { TILE = TEAM * FIRST_CHUNK };
enum { PITCH = LEVEL + 1 };  // from what a thread reduces again to the next one's: odd in words
enum { ROOM = min_of(TEAM, TILE * (int)sizeof(Cell) / (int)sizeof(Part) / PITCH) * LEVEL };
enum { FEW = 3 };  // units of a tile: then nothing is reduced again
static_assert(TILE < 1 << 16, "counts of entries of a tile take 16 bits");
static_assert(PITCH * sizeof(Part) <= FIRST_CHUNK * sizeof(Cell), "stacks have room for all parts");
#define NESTED ((Part)((Part)1 << (8 * sizeof(Part) - 1)))  // a part is a token, or NESTED | state

// What is known of the tiles, all in one array.
struct Tiles {
    int4 *head;      // of a tile: its first entry among the rests, entries, units, those before it
    uint2 *bounds;   // of a unit, and behind the last: entries before it; other than `(` | `)` << 16
    int *directory;  // `)` before each FIRST_CHUNK of its entries
    int count;

    __device__ Tiles(int *memory, int count_) : head((int4 *)memory), count(count_) {
        bounds = (uint2 *)(head + count);
        directory = (int *)(bounds + (size_t)count * (TEAM + 1));
    }
    __device__ uint2 *bounds_of(int tile) const { return bounds + (size_t)tile * (TEAM + 1); }
    __device__ int *directory_of(int tile) const { return directory + (size_t)tile * TEAM; }
};

// What the threads of a block tell each other.
struct Board {
    int number[TEAM];
    Byte closes[TEAM], opens[TEAM], taken[TEAM];
    int base;
};

// Tokens at the start of a piece that has no `)` belong to the innermost span that is open before it.
// Of this thread's piece those are gone that another has taken: their number is returned.
template <class Piece, class Place>
__device__ int absorb(Piece &piece, int closing, int pieces, Board &board, Place place) {
    int thread = threadIdx.x;
    board.number[thread] = piece.floor(), board.closes[thread] = closing > 0;
    board.opens[thread] = piece.opening() > 0, board.taken[thread] = 0;
    __syncthreads();
    if (piece.opening()) {
        for (int next = thread + 1; next < pieces && !board.closes[next]; next++) {
            for (int i = 0; i < board.number[next]; i++) {
                piece.state = piece.table[piece.state * WIDTH + place(next, i)];
            }
            board.taken[next] = 1;
            if (board.opens[next]) break;
        }
    }
    __syncthreads();
    piece.end();
    return board.taken[thread] ? piece.floor() : 0;
}

// How the entries of all pieces lie in the tile, and where units begin: where a `)`, or a token that
// belongs before one, comes after a `(`.
struct Cut {
    int entries, units;  // of the tile
    int offset, unit;    // of this thread's first entry
    bool apart;          // it begins a unit
};

template <class Piece> __device__ Cut cut(const Piece &piece, int taken) {
    int before = piece.floor() - taken, opening = piece.opening(), total;
    int mark = before || opening ? 2 * (int)threadIdx.x + (opening > 0) : -1;
    int previous = most_before<TEAM>(mark);
    bool apart = before && previous >= 0 && previous % 2;
    int place = sum_before<TEAM>((before + opening) | apart << 16, &total);
    int entries = total & 65535;
    return {entries, entries ? (total >> 16) + 1 : 0, place & 65535, (place >> 16) + apart, apart};
}

// Leaves the entries of the tile among the rests, and writes down its units. They go there through
// `window`, some words at a time, so that whole lines are written; one word of 33 there is left out, so
// that threads with as many entries as a line has do not wait for the same bank.
template <class Piece>
__device__ void publish(const Piece &piece, int closing, int taken, const Cut &cut, int tile,
                        Tiles &tiles, Board &board, Part *window, int *control, Cell *rests,
                        long long room) {
    enum { SHARE = 4 / sizeof(Cell), BITS = 8 * sizeof(Cell) };
    enum { WINDOW = TEAM * PITCH * (int)sizeof(Part) / (4 * 33) * 32 * SHARE };  // entries
    int thread = threadIdx.x, before = piece.floor() - taken, count = before + piece.opening(), all;
    int total = ceil_div(cut.entries, 16) * 16;
    if (thread == 0) {
        board.base = total ? atomicAdd(control + USED, total) : 0;
        if (board.base + (long long)total > room) control[ERROR] = NO_ROOM, board.base = -1;
    }
    board.number[thread] = 0;  // of `)` among FIRST_CHUNK of the tile's entries
    unsigned int sum = sum_before<TEAM>(before | closing << 16, &all);
    int base = board.base;
    uint2 *bounds = tiles.bounds_of(tile);
    if (thread == 0) {
        tiles.head[tile] = {base, cut.entries, cut.units, 0};
        bounds[0] = {0, 0};
        bounds[cut.units] = {(unsigned int)cut.entries, (unsigned int)all};
    }
    if (cut.apart) bounds[cut.unit] = {(unsigned int)cut.offset, sum};
    int i = -(cut.offset % SHARE), here = 0;  // by words: the first entry of the next one
    for (int first = 0; base >= 0 && first < total; first += WINDOW) {
        for (; i < count && cut.offset + i < first + WINDOW; i += SHARE) {
            unsigned int word = 0;
#pragma unroll
            for (int k = 0; k < SHARE; k++) {
                bool own = i + k >= 0 && i + k < count;
                Cell entry = own ? (Cell)piece.left(taken + i + k) : 0;
                here += own && i + k < before && entry == CLOSE;
                word |= (unsigned int)entry << k * BITS;
            }
            int place = (cut.offset + i - first) / SHARE;
            unsigned int *to = (unsigned int *)window + place + place / 32;
            if (i >= 0 && i + SHARE <= count) {
                *to = word;
            } else {  // a word that is shared with neighbours
#pragma unroll
                for (int k = 0; k < SHARE; k++) {
                    if (i + k >= 0 && i + k < count) ((Cell *)to)[k] = (Cell)(word >> k * BITS);
                }
            }
            int at = cut.offset + i + SHARE;
            if (here && (at % FIRST_CHUNK == 0 || i + SHARE >= count)) {
                atomicAdd(board.number + (at - 1) / FIRST_CHUNK, here);
                here = 0;
            }
        }
        __syncthreads();
        int words = at_most(total - first, (int)WINDOW) / SHARE;
        unsigned int *lines = (unsigned int *)(rests + base + first);
        for (int w = thread; w < words; w += TEAM) lines[w] = ((unsigned int *)window)[w + w / 32];
        __syncthreads();
    }
    __syncthreads();
    tiles.directory_of(tile)[thread] = sum_before<TEAM>(board.number[thread], &all);
}

// What is left of a piece, for others to reduce again.
template <class Piece>
__device__ void to_parts(const Piece &piece, int taken, int offset, Part *parts) {
    int at = offset / LEVEL * PITCH + offset % LEVEL, left = LEVEL - offset % LEVEL;
    for (int i = taken, height = piece.height(); i < height; i++) {
        parts[at++] = (Part)piece.left(i) | (i < piece.floor() ? (Part)0 : NESTED);
        if (--left == 0) at += PITCH - LEVEL, left = LEVEL;
    }
}

// The rest of a tile whose chunks are reduced.
__device__ void finish_tile(Chunk &chunk, Cell *stacks, Part *parts, int tile, Tiles &tiles,
                            int *control, Cell *rests, long long room) {
    __shared__ Board board;
    int closing = chunk.closing();
    int taken = absorb(chunk, closing, TEAM, board, [&](int thread, int i) {
        return stacks[Column<Cell, TEAM>::of(thread) + i * Column<Cell, TEAM>::STEP];
    });
    Cut all = cut(chunk, taken);
    if (all.units <= FEW || all.entries > ROOM) {
        publish(chunk, closing, taken, all, tile, tiles, board, parts, control, rests, room);
        return;
    }
    to_parts(chunk, taken, all.offset, parts);
    int entries = all.entries, left;
    for (Part *other = (Part *)stacks;; entries = left) {
        __syncthreads();
        int pieces = ceil_div(entries, LEVEL), first = (int)threadIdx.x * LEVEL;
        Reducer<Part, 1> piece(chunk.table, 0, parts, threadIdx.x * PITCH);
        Part part = piece.entry(0);
        for (int i = 0, own = at_most(entries - first, LEVEL); i < own; i++) {
            Part next = piece.entry(i + 1);  // the stack is no higher than what was read
            piece.take(part, part & NESTED, part == CLOSE, (Cell)(part & ~NESTED));
            part = next;
        }
        int offset = sum_before<TEAM>(piece.height(), &left);
        if (pieces <= FEW || left > entries - entries / 8) {
            closing = piece.closing();
            taken = absorb(piece, closing, pieces, board, [&](int thread, int i) {
                return parts[thread * PITCH + i];
            });
            all = cut(piece, taken);
            publish(piece, closing, taken, all, tile, tiles, board, other, control, rests, room);
            return;
        }
        piece.end();
        to_parts(piece, 0, offset, other);
        Part *swapped = parts;
        parts = other, other = swapped;
    }
}

// Bytes of the text, or token ids: `tokens` says what each byte is.
__device__ void reduce_bytes_of(Chunk &reducer, size_t start, const Byte *text, int length,
                                const Byte *tokens) {
    if (start >= length) return;
    size_t at = start, end = start + FIRST_CHUNK < length ? start + FIRST_CHUNK : length;
    uint4 some = {0, 0, 0, 0};
    if (at + 16 <= end) some = *(const uint4 *)(text + at);
    for (; at + 16 <= end; at += 16) {
        unsigned int words[4] = {some.x, some.y, some.z, some.w};
        if (at + 32 <= end) some = *(const uint4 *)(text + at + 16);  // on its way meanwhile
        Byte read[16];  // all before the first is used, since they do not wait for each other
#pragma unroll
        for (int k = 0; k < 16; k++) read[k] = tokens[words[k / 4] >> 8 * (k % 4) & 255];
#pragma unroll
        for (int k = 0; k < 16; k++) reducer.take(read[k]);
    }
    for (; at < end; at++) {
        reducer.take(tokens[text[at]]);
    }
}
