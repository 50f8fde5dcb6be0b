// The sum over the threads before this one, and over all N of the block.
template <int N, class Number> __device__ Number sum_before(Number x, Number *total) {
    __shared__ Number sums[N];
    int thread = threadIdx.x;
    __syncthreads();
    sums[thread] = x;
    __syncthreads();
    for (int reach = 1; reach < N; reach *= 2) {
        Number other = thread >= reach ? sums[thread - reach] : 0;
        __syncthreads();
        sums[thread] += other;
        __syncthreads();
    }
    *total = sums[N - 1];
    return sums[thread] - x;
}
