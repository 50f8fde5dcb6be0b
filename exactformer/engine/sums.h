// Sums over the threads of a block.

// What `join` makes of x over the threads before this one, and over all N of the block.
template <int N, class Number, class Join>
__device__ Number scan_before(Number x, Number neutral, Join join, Number *total) {
    enum { LANES = N < 32 ? N : 32, WARPS = N / LANES };
    __shared__ Number joined[WARPS];
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    Number mine = x;
#pragma unroll
    for (int reach = 1; reach < LANES; reach *= 2) {
        Number other = __shfl_up_sync(~0u, mine, reach);
        if (lane >= reach) mine = join(other, mine);
    }
    Number before = __shfl_up_sync(~0u, mine, 1), earlier = neutral, all = neutral;
    __syncthreads();  // nobody reads what was joined the last time
    if (lane == LANES - 1) joined[warp] = mine;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        if (w < warp) earlier = join(earlier, joined[w]);
        all = join(all, joined[w]);
    }
    *total = all;
    return lane ? join(earlier, before) : earlier;
}
template <int N, class Number> __device__ Number sum_before(Number x, Number *total) {
    return scan_before<N>(x, (Number)0, [](Number a, Number b) { return a + b; }, total);
}
