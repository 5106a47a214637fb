// Batch normalisation in training with all that surrounds it: what is added, the rectifier, and the
// way back through the three. Each kernel reads a tensor at most once.
//
// A tensor is a sequence of rows, one a pixel, of `8 · width` channels in bfloat16. A thread always
// meets the same eight channels, because `width` divides the number of threads of a block. Sums go
// through one partial sum a block in a fixed order, so that results repeat bit for bit.
//
// Of a normalisation, `kept` holds four rows of numbers by channel: mean, 1 / deviation, and factor
// and shift such that its output is `factor · x + shift`.
//
// Comparisons are written so that what is no number stays so: a training that diverges must show it.

typedef long long Size;

constexpr int THREADS = 256;
constexpr float EPSILON = 1e-5f;
constexpr float MOMENTUM = 0.1f;

struct alignas(16) Eight {
    unsigned word[4];
};

__device__ __forceinline__ void unpack(const Eight &packed, float *value)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        value[2 * i] = __uint_as_float(packed.word[i] << 16);
        value[2 * i + 1] = __uint_as_float(packed.word[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ Eight pack(const float *value)
{
    Eight packed;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
            : "=r"(packed.word[i])
            : "f"(value[2 * i + 1]), "f"(value[2 * i]));
    }
    return packed;
}

// The numbers of this thread's channels in one row of `table`.
__device__ __forceinline__ void channels(const float *table, Size width, int row, float *value)
{
    const float *from = table + (row * width + threadIdx.x % width) * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) value[j] = from[j];
}

// Adds the sums of all threads of the block that share channels, and writes them to its part.
template <int COUNT>
__device__ __forceinline__ void put(const float *sum, float *partial, Size width)
{
    __shared__ float room[COUNT][THREADS];
    const int thread = threadIdx.x;
#pragma unroll
    for (int v = 0; v < COUNT; ++v) room[v][thread] = sum[v];
    for (int half = THREADS / 2; half >= width; half /= 2) {
        __syncthreads();
        if (thread < half) {
#pragma unroll
            for (int v = 0; v < COUNT; ++v) room[v][thread] += room[v][thread + half];
        }
    }
    if (thread < width) {
#pragma unroll
        for (int v = 0; v < COUNT; ++v) {
            partial[(blockIdx.x * COUNT + v) * width + thread] = room[v][thread];
        }
    }
}

// One sum over all parts, known to thread 0. A block is for one channel.
__device__ __forceinline__ float take(const float *partial, Size parts, Size count, Size width,
                                      Size which)
{
    __shared__ float room[THREADS];
    const Size channel = blockIdx.x;
    const float *from = partial + (which * 8 + channel % 8) * width + channel / 8;
    float sum = 0;
    for (Size part = threadIdx.x; part < parts; part += THREADS) sum += from[part * count * width];
    room[threadIdx.x] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
    }
    __syncthreads();
    sum = room[0];
    __syncthreads();
    return sum;
}

// Sums of x and of its square, from the first row on: small numbers even where the mean is large.
extern "C" __global__ void __launch_bounds__(THREADS)
measure(const Eight *x, float *partial, Size eights, Size width)
{
    float sum[16] = {0}, origin[8];
    unpack(x[threadIdx.x % width], origin);
    const Size step = (Size)gridDim.x * THREADS;
#pragma unroll 4
    for (Size i = (Size)blockIdx.x * THREADS + threadIdx.x; i < eights; i += step) {
        float value[8];
        unpack(x[i], value);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const float away = value[j] - origin[j];
            sum[j] += away;
            sum[8 + j] += away * away;
        }
    }
    put<16>(sum, partial, width);
}

extern "C" __global__ void __launch_bounds__(THREADS)
measured(const Eight *x, const float *partial, Size parts, Size width, Size rows,
         const float *scale, const float *bias, float *running_mean, float *running_variance,
         float *kept)
{
    const float first = take(partial, parts, 16, width, 0) / rows;
    const float second = take(partial, parts, 16, width, 1) / rows;
    if (threadIdx.x != 0) return;
    const Size channel = blockIdx.x, count = width * 8;
    float origin[8];
    unpack(x[channel / 8], origin);
    const float mean = origin[channel % 8] + first;
    const float difference = second - first * first;
    const float variance = difference < 0 ? 0 : difference;
    const float inverse = rsqrtf(variance + EPSILON);
    const float factor = scale[channel] * inverse;
    const float unbiased = variance * ((float)rows / (float)(rows > 1 ? rows - 1 : 1));
    running_mean[channel] += MOMENTUM * (mean - running_mean[channel]);
    running_variance[channel] += MOMENTUM * (unbiased - running_variance[channel]);
    kept[channel] = mean;
    kept[count + channel] = inverse;
    kept[2 * count + channel] = factor;
    kept[3 * count + channel] = bias[channel] - mean * factor;
}

// The normalised x, plus `added` (normalised by `kept_added` where there is one), rectified.
extern "C" __global__ void __launch_bounds__(THREADS)
apply(const Eight *x, const float *kept, const Eight *added, const float *kept_added, Eight *y,
      Size eights, Size width)
{
    float factor[8], shift[8], factor_added[8];
    channels(kept, width, 2, factor);
    channels(kept, width, 3, shift);
#pragma unroll
    for (int j = 0; j < 8; ++j) factor_added[j] = 1;
    if (kept_added) {
        float more[8];
        channels(kept_added, width, 2, factor_added);
        channels(kept_added, width, 3, more);
#pragma unroll
        for (int j = 0; j < 8; ++j) shift[j] += more[j];
    }
    const Size step = (Size)gridDim.x * THREADS;
#pragma unroll 4
    for (Size i = (Size)blockIdx.x * THREADS + threadIdx.x; i < eights; i += step) {
        float value[8];
        unpack(x[i], value);
#pragma unroll
        for (int j = 0; j < 8; ++j) value[j] = value[j] * factor[j] + shift[j];
        if (added) {
            float more[8];
            unpack(added[i], more);
#pragma unroll
            for (int j = 0; j < 8; ++j) value[j] += more[j] * factor_added[j];
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) value[j] = value[j] < 0 ? 0 : value[j];
        y[i] = pack(value);
    }
}

// The gradient at the rectifier's input: `gradient + more` where the output was positive. Sums of
// it, of it times the normalised x, and of it times the normalised `around`. It is written to
// `gated` where that is given. Without `y` the output is computed again from x.
template <bool AROUND>
__device__ __forceinline__ void
gather_sums(const Eight *gradient, const Eight *more, const Eight *y, const Eight *x,
            const float *kept, const Eight *around, const float *kept_around, Eight *gated,
            float *partial, Size eights, Size width)
{
    constexpr int COUNT = AROUND ? 24 : 16;
    float sum[COUNT] = {0}, mean[8], inverse[8], factor[8], shift[8];
    channels(kept, width, 0, mean);
    channels(kept, width, 1, inverse);
    channels(kept, width, 2, factor);
    channels(kept, width, 3, shift);
    float mean_around[8], inverse_around[8];
    if (AROUND) {
        channels(kept_around, width, 0, mean_around);
        channels(kept_around, width, 1, inverse_around);
    }
    const Size step = (Size)gridDim.x * THREADS;
#pragma unroll 2
    for (Size i = (Size)blockIdx.x * THREADS + threadIdx.x; i < eights; i += step) {
        float back[8], value[8];
        unpack(gradient[i], back);
        unpack(x[i], value);
        if (more) {
            float rest[8];
            unpack(more[i], rest);
#pragma unroll
            for (int j = 0; j < 8; ++j) back[j] += rest[j];
        }
        if (y) {
            float output[8];
            unpack(y[i], output);
#pragma unroll
            for (int j = 0; j < 8; ++j) back[j] = output[j] <= 0 ? 0 : back[j];
        } else {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                back[j] = value[j] * factor[j] + shift[j] <= 0 ? 0 : back[j];
            }
        }
        if (gated) {
            const Eight packed = pack(back);
            gated[i] = packed;
            // The sums are those of the numbers that the next kernel will read.
            unpack(packed, back);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            sum[j] += back[j];
            sum[8 + j] += back[j] * ((value[j] - mean[j]) * inverse[j]);
        }
        if (AROUND) {
            unpack(around[i], value);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                sum[16 + j] += back[j] * ((value[j] - mean_around[j]) * inverse_around[j]);
            }
        }
    }
    put<COUNT>(sum, partial, width);
}

extern "C" __global__ void __launch_bounds__(THREADS)
gather(const Eight *gradient, const Eight *more, const Eight *y, const Eight *x, const float *kept,
       Eight *gated, float *partial, Size eights, Size width)
{
    gather_sums<false>(gradient, more, y, x, kept, nullptr, nullptr, gated, partial, eights, width);
}

extern "C" __global__ void __launch_bounds__(THREADS)
gather_around(const Eight *gradient, const Eight *more, const Eight *y, const Eight *x,
              const float *kept, const Eight *around, const float *kept_around, Eight *gated,
              float *partial, Size eights, Size width)
{
    gather_sums<true>(gradient, more, y, x, kept, around, kept_around, gated, partial, eights,
                      width);
}

// Gradients of scale and shift, and the three numbers by channel with which a pixel's gradient is
// `way[0] · gated + way[1] · x + way[2]`. `which` is the sum that belongs to this normalisation.
extern "C" __global__ void __launch_bounds__(THREADS)
gathered(const float *partial, Size parts, Size count, Size which, Size width, Size rows,
         const float *kept, float *learned, float *way)
{
    const float sum = take(partial, parts, count, width, 0);
    const float product = take(partial, parts, count, width, which);
    if (threadIdx.x != 0) return;
    const Size channel = blockIdx.x, all = width * 8;
    const float mean = kept[channel], inverse = kept[all + channel];
    const float factor = kept[2 * all + channel];
    const float slope = -factor * inverse * product / rows;
    learned[channel] = product;
    learned[all + channel] = sum;
    way[channel] = factor;
    way[all + channel] = slope;
    way[2 * all + channel] = -factor * sum / rows - slope * mean;
}

// The gradient of x. With `kept` the gradient is still to be gated by the rectifier.
extern "C" __global__ void __launch_bounds__(THREADS)
spread(const Eight *gradient, const Eight *x, const float *kept, const float *way, Eight *result,
       Size eights, Size width)
{
    float by_gradient[8], by_value[8], constant[8], factor[8], shift[8];
    channels(way, width, 0, by_gradient);
    channels(way, width, 1, by_value);
    channels(way, width, 2, constant);
    if (kept) {
        channels(kept, width, 2, factor);
        channels(kept, width, 3, shift);
    }
    const Size step = (Size)gridDim.x * THREADS;
#pragma unroll 2
    for (Size i = (Size)blockIdx.x * THREADS + threadIdx.x; i < eights; i += step) {
        float back[8], value[8];
        unpack(gradient[i], back);
        unpack(x[i], value);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const bool shut = kept && value[j] * factor[j] + shift[j] <= 0;
            const float gated = shut ? 0 : back[j];
            back[j] = by_gradient[j] * gated + by_value[j] * value[j] + constant[j];
        }
        result[i] = pack(back);
    }
}
