// A circuit on many words of assignments, 64 in each, on a GPU.
//
// Threads need not wait for each other: each takes one word and runs all gates on it, in their order.
// Neighbours take neighbouring words, so that a warp reads and writes whole lines of memory, and all
// of its threads read the same gate.
//
//   rows    rows[r * words + w] is word w of row r; circuits.py says which wire a row is when
//   gates   for each gate its rows a, b and out, and its way: bits INVERT_A, INVERT_B, INVERT, IS_XOR
//
// The host defines, when it compiles, these four bits.

typedef unsigned long long Bits;  // of 64 assignments

__device__ inline Bits all_if(int bit) { return bit ? ~0ull : 0ull; }

extern "C" __global__ void run_gates(const int4 *gates, long long count, Bits *rows,
                                     long long words) {
    long long word = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= words) return;
    Bits *mine = rows + word;
    for (long long i = 0; i < count; i++) {
        int4 gate = gates[i];
        Bits a = mine[gate.x * words], b = mine[gate.y * words];
        Bits both = (a ^ all_if(gate.w & INVERT_A)) & (b ^ all_if(gate.w & INVERT_B));
        mine[gate.z * words] = (gate.w & IS_XOR ? a ^ b : both) ^ all_if(gate.w & INVERT);
    }
}
