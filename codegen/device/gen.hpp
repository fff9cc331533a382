// gen.hpp: the device side of genrw, namespace gen. One header for
//   * AMD GPUs    (clang or hiprtc as HIP, without HIP headers and without device libraries),
//   * NVIDIA GPUs (NVRTC or nvcc),
//   * the host    (g++ or clang as C++17), where the same kernels run on the CPU, lanes emulated.
// It includes nothing. -DGEN_WAVE_SIZE=64|32|1 is always given; host builds also get GEN_BLOCK (lanes of a
// workgroup) and GEN_LANE_LOOPS (1 when the kernel's text has the loops over them: lanes of it meet).
//
// Compilers are told not to contract a*b+c. What is fused is written so: gen::fma.
#ifndef GEN_HPP
#define GEN_HPP

#ifndef GEN_WAVE_SIZE
#error "GEN_WAVE_SIZE is not defined: pass -DGEN_WAVE_SIZE=64, 32 or 1"
#endif

// ---------------------------------------------------------------------------------------------------------
// Platform
// ---------------------------------------------------------------------------------------------------------

#define GEN_PRAGMA(text) _Pragma(#text)

#if defined(__HIP__) || defined(__AMDGCN__)
#define GEN_AMD 1
#define GEN_DEVICE __attribute__((device)) inline __attribute__((always_inline))
#define GEN_CONSTANT __attribute__((constant)) constexpr
#define GEN_KERNEL(block) \
    extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(block, block))) void
// The waves of `groups` workgroups share a unit's four processors: no lane gets more registers than that leaves.
#define GEN_KERNEL_RESIDENT(block, groups)                               \
    extern "C" __attribute__((global))                                   \
    __attribute__((amdgpu_flat_work_group_size(block, block)))           \
    __attribute__((amdgpu_waves_per_eu((block / GEN_WAVE_SIZE * groups + 3) / 4))) void
#define GEN_LDS(type, name, count) __attribute__((shared)) __attribute__((aligned(16))) type name[count]
#define GEN_REST_LDS(type, name, offset, count) __attribute__((shared)) __attribute__((aligned(16))) type name[count]
#define GEN_DYNAMIC_LDS(type, name, offset, count) GEN_REST_LDS(type, name, offset, count)
#define GEN_REUSED_LDS(type, name, memory, count) type* const name = reinterpret_cast<type*>(memory)
#define GEN_UNROLL _Pragma("unroll")
#define GEN_UNROLL_BY(count) GEN_PRAGMA(unroll count)
#define GEN_ROLLED
#define GEN_UNROLL_WHOLE GEN_UNROLL
#elif defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GEN_NVIDIA 1
#define GEN_DEVICE __device__ __forceinline__
#define GEN_CONSTANT __constant__ constexpr
#define GEN_KERNEL(block) extern "C" __global__ __launch_bounds__(block) void
#define GEN_KERNEL_RESIDENT(block, groups) extern "C" __global__ __launch_bounds__(block, groups) void
#define GEN_TENSOR_MAP(name, ...) const __grid_constant__ gen::tensor_map name
#define GEN_PICTURE_MAP(name, picture, ...) const __grid_constant__ gen::picture_map<__VA_ARGS__> name
#define GEN_LDS(type, name, count) __shared__ __attribute__((aligned(1024))) type name[count]
// Workgroup memory that the launch asks for: there is more of it than a kernel may declare.
extern __shared__ __attribute__((aligned(1024))) unsigned char gen_rest_lds[];
#define GEN_REST_LDS(type, name, offset, count) type* const name = reinterpret_cast<type*>(gen_rest_lds + offset)
#define GEN_DYNAMIC_LDS(type, name, offset, count) GEN_REST_LDS(type, name, offset, count)
#define GEN_REUSED_LDS(type, name, memory, count) type* const name = reinterpret_cast<type*>(memory)
#define GEN_UNROLL _Pragma("unroll")
#define GEN_UNROLL_BY(count) GEN_PRAGMA(unroll count)
#define GEN_ROLLED
#define GEN_UNROLL_WHOLE GEN_UNROLL
#else
#define GEN_HOST 1
#define GEN_DEVICE inline __attribute__((always_inline))
#define GEN_CONSTANT static constexpr
// The kernel is inlined into what calls it: a loop over lanes vectorises, over groups where a group is one lane.
#define GEN_KERNEL(block) static inline __attribute__((always_inline)) void
#define GEN_KERNEL_RESIDENT(block, groups) GEN_KERNEL(block)
// The address is looked up once: each use of a thread's variable would look it up again.
#define GEN_LDS(type, name, count)                                       \
    alignas(64) static thread_local type name##_of_thread[count];        \
    type* const name = name##_of_thread;                                 \
    {                                                                    \
        static thread_local gen::host::lds_block gen_block_;             \
        gen::host::enter_lds(gen_block_, name, sizeof(name##_of_thread)); \
    }
#define GEN_REST_LDS(type, name, offset, count) type* const name = nullptr
#define GEN_DYNAMIC_LDS(type, name, offset, count) GEN_LDS(type, name, count)
#define GEN_REUSED_LDS(type, name, memory, count) GEN_LDS(type, name, count)
#define GEN_TENSOR_MAP(name, ...) const gen::tensor_map<__VA_ARGS__> name
#define GEN_LISTED(...) __VA_ARGS__
#define GEN_PICTURE_MAP(name, picture, ...) const gen::picture_map<GEN_LISTED picture, __VA_ARGS__> name
// Unrolling is left to the host compiler: it vectorises the loop first. What is to be in registers is unrolled.
#define GEN_UNROLL
#define GEN_UNROLL_BY(count)
#if defined(__clang__)
#define GEN_UNROLL_WHOLE _Pragma("unroll")
#define GEN_ROLLED _Pragma("nounroll")
#else
#define GEN_UNROLL_WHOLE _Pragma("GCC unroll 256")
#define GEN_ROLLED _Pragma("GCC unroll 1")
#endif
#if !defined(GEN_BLOCK) || !defined(GEN_LANE_LOOPS)
#error "GEN_BLOCK and GEN_LANE_LOOPS are not defined: host kernels are built by genrw.codegen.host"
#endif
#endif

namespace gen {

// ---------------------------------------------------------------------------------------------------------
// Types
// ---------------------------------------------------------------------------------------------------------

using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned;
using int64 = long long;
using uint64 = unsigned long long;

/// N values of one type: a lane's share of a row. An aggregate: `gen::array<float, 2>{1, 2}`.
template <class T, int N>
struct array
{
    T items[N];

    GEN_DEVICE constexpr T& operator[](int i) { return items[i]; }
    GEN_DEVICE constexpr const T& operator[](int i) const { return items[i]; }
    GEN_DEVICE static constexpr int size() { return N; }
};

/// A number that counts the elements of chunks: what is divided by the length of a chunk, or is the rest, is at hand, so that
/// a loop over a chunk's elements need not compute it.
template <int Chunk>
struct element_number
{
    int chunk, place;

    GEN_DEVICE constexpr operator int() const { return chunk * Chunk + place; }
    GEN_DEVICE constexpr int operator/(int length) const
    {
        return length % Chunk == 0 ? chunk / (length / Chunk)
             : Chunk % length == 0 ? chunk * (Chunk / length) + place / length
                                   : int(*this) / length;
    }
    GEN_DEVICE constexpr int operator%(int length) const
    {
        return length % Chunk == 0 ? chunk % (length / Chunk) * Chunk + place
             : Chunk % length == 0 ? place % length
                                   : int(*this) % length;
    }
};

/// Loops over the elements of chunks, in turn.
#define GEN_LONG_SHARE(name, chunks, length)                                       \
    for (int name##_chunk = 0; name##_chunk < chunks; ++name##_chunk)              \
        GEN_ROLLED                                                                 \
        for (int name##_place = 0; name##_place < length; ++name##_place)          \
            if (const gen::element_number<length> name{name##_chunk, name##_place}; true)

namespace detail {

template <class To, class From>
GEN_DEVICE constexpr To bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    return __builtin_bit_cast(To, x);
}

/// The value that a word's low bits are.
template <class T>
GEN_DEVICE constexpr T low_bits(uint32 word)
{
    if constexpr (sizeof(T) == 2) {
        return bits<T>(static_cast<uint16>(word));
    } else {
        return bits<T>(static_cast<uint8>(word));
    }
}

// NVRTC has few of the other compilers' builtins.
GEN_CONSTANT float float_infinity = bits<float>(0x7f800000u);

GEN_DEVICE void copy_bytes(void* to, const void* from, unsigned long long size)
{
#if GEN_NVIDIA
    memcpy(to, from, size);
#else
    __builtin_memcpy(to, from, size);
#endif
}

template <class A, class B>
struct same
{
    static constexpr bool value = false;
};
template <class A>
struct same<A, A>
{
    static constexpr bool value = true;
};

// A parameter of this type takes part in no deduction: arguments are converted to what others decide.
template <class T>
struct given
{
    using type = T;
};
template <class T>
using as_given = typename given<T>::type;

// What two index or number types meet in: their own type if it is one, else what C++ adds them in.
template <class A, class B>
struct common_type
{
    using type = decltype(A() + B());
};
template <class A>
struct common_type<A, A>
{
    using type = A;
};
template <class A, class B>
using common = typename common_type<A, B>::type;

template <class T>
inline constexpr bool is_float = same<T, float>::value || same<T, double>::value;
template <class T>
inline constexpr bool is_bool = same<T, bool>::value;

// The unsigned integer of a type's size.
template <int Bytes>
struct word;
template <>
struct word<1>
{
    using type = uint8;
};
template <>
struct word<2>
{
    using type = uint16;
};
template <>
struct word<4>
{
    using type = uint32;
};
template <>
struct word<8>
{
    using type = uint64;
};
template <class T>
using unsigned_of = typename word<sizeof(T)>::type;

// A double as a float rounded to odd: rounding that once more to half or bf16 gives what rounding the double
// directly would have given, because the last bit remembers that something was cut off.
GEN_DEVICE constexpr float round_to_odd(double x)
{
    const float nearest = static_cast<float>(x);
    const double back = nearest;
    const uint32 word = bits<uint32>(nearest);
    if (x != x || back == x || (word & 1)) return nearest;
    const bool below = (back < x) == (x > 0);  // nearest lies between zero and x
    return bits<float>(below ? word + 1 : word - 1);
}

}  // namespace detail

// ---------------------------------------------------------------------------------------------------------
// half and bf16: stored in 16 bits, computed with in float
// ---------------------------------------------------------------------------------------------------------

#if GEN_NVIDIA
}  // namespace gen
// Of libdevice: unlike assembly, the compiler folds what it does to constants, and does it once to what is the same.
extern "C" __device__ unsigned short __nv_float2half_rn(float);
extern "C" __device__ float __nv_half2float(unsigned short);
namespace gen {
#endif

// g++ has _Float16, but converts it one element at a time; the integer form below vectorises.
#if GEN_AMD || (GEN_HOST && defined(__clang__) && (defined(__F16C__) || defined(__aarch64__)))
#define GEN_NATIVE_HALF 1
#endif
#if GEN_AMD && (defined(__gfx950__) || defined(__gfx1250__))
#define GEN_NATIVE_BF16 1
#endif

namespace detail {

// All ones or all zeros: choosing by masks leaves no branch, so that loops of conversions vectorise.
GEN_DEVICE constexpr uint32 mask_if(bool condition) { return 0u - static_cast<uint32>(condition); }

// Rounds to nearest even. Normal values add their rounding to the bits, subnormal ones let the addition of
// 0.5 cut the mantissa where half's ends.
GEN_DEVICE constexpr uint16 half_bits_soft(float x)
{
    const uint32 word = bits<uint32>(x);
    const uint32 magnitude = word & 0x7fffffffu;
    const uint32 small = mask_if(magnitude < 0x38800000u);   // below 2^-14
    const uint32 large = mask_if(magnitude >= 0x47800000u);  // 65536 and beyond, infinity, nan
    const uint32 subnormal = bits<uint32>(bits<float>(magnitude & small) + 0.5f) - 0x3f000000u;
    const uint32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const uint32 overflow = 0x7c00u | (mask_if(magnitude > 0x7f800000u) & 0x0200u);
    const uint32 finite = (subnormal & small) | (normal & ~small);
    return static_cast<uint16>(((word >> 16) & 0x8000u) | (overflow & large) | (finite & ~large));
}

GEN_DEVICE constexpr float half_value_soft(uint16 h)
{
    const uint32 magnitude = static_cast<uint32>(h & 0x7fff) << 13;
    const uint32 small = mask_if(magnitude < 0x00800000u);
    const uint32 subnormal = bits<uint32>(bits<float>(magnitude + 0x38800000u) - 0x1p-14f);
    const uint32 normal = magnitude + 0x38000000u + (mask_if(magnitude >= 0x0f800000u) & 0x38000000u);
    return bits<float>((subnormal & small) | (normal & ~small) | (static_cast<uint32>(h & 0x8000) << 16));
}

GEN_DEVICE constexpr uint16 bf16_bits_soft(float x)
{
    const uint32 word = bits<uint32>(x);
    const uint32 rounded = word + 0x7fffu + ((word >> 16) & 1u);
    const uint32 nan = mask_if(x != x);
    return static_cast<uint16>((((word | 0x400000u) & nan) | (rounded & ~nan)) >> 16);
}

#if GEN_NVIDIA
GEN_DEVICE uint16 bf16_bits_ptx(float x)
{
    uint16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
    return result;
}
#endif

GEN_DEVICE constexpr uint16 half_bits(float x)
{
#if GEN_NATIVE_HALF
    return bits<uint16>(static_cast<_Float16>(x));
#elif GEN_NVIDIA
    return __builtin_is_constant_evaluated() ? half_bits_soft(x) : __nv_float2half_rn(x);
#else
    return half_bits_soft(x);
#endif
}

GEN_DEVICE constexpr float half_value(uint16 h)
{
#if GEN_NATIVE_HALF
    return static_cast<float>(bits<_Float16>(h));
#elif GEN_NVIDIA
    return __builtin_is_constant_evaluated() ? half_value_soft(h) : __nv_half2float(h);
#else
    return half_value_soft(h);
#endif
}

GEN_DEVICE constexpr uint16 bf16_bits(float x)
{
#if GEN_NATIVE_BF16
    return bits<uint16>(static_cast<__bf16>(x));
#elif GEN_NVIDIA
    return __builtin_is_constant_evaluated() ? bf16_bits_soft(x) : bf16_bits_ptx(x);
#else
    return bf16_bits_soft(x);
#endif
}

}  // namespace detail

/// IEEE binary16. Conversions are explicit and round to nearest even, from double in one step.
struct half
{
    uint16 word;

    half() = default;
    GEN_DEVICE constexpr explicit half(float x) : word(detail::half_bits(x)) {}
    GEN_DEVICE constexpr explicit half(double x) : word(detail::half_bits(detail::round_to_odd(x))) {}
    GEN_DEVICE constexpr explicit half(int x) : half(static_cast<double>(x)) {}
    GEN_DEVICE constexpr explicit operator float() const { return detail::half_value(word); }
    GEN_DEVICE static constexpr half from_bits(uint16 word)
    {
        half result{};
        result.word = word;
        return result;
    }
};

/// The upper 16 bits of a float. Conversions are explicit and round to nearest even, from double in one step.
struct bf16
{
    uint16 word;

    bf16() = default;
    GEN_DEVICE constexpr explicit bf16(float x) : word(detail::bf16_bits(x)) {}
    GEN_DEVICE constexpr explicit bf16(double x) : word(detail::bf16_bits(detail::round_to_odd(x))) {}
    GEN_DEVICE constexpr explicit bf16(int x) : bf16(static_cast<double>(x)) {}
    GEN_DEVICE constexpr explicit operator float() const
    {
        return detail::bits<float>(static_cast<uint32>(word) << 16);
    }
    GEN_DEVICE static constexpr bf16 from_bits(uint16 word)
    {
        bf16 result{};
        result.word = word;
        return result;
    }
};

namespace detail {

template <class T>
inline constexpr bool is_small_float = same<T, half>::value || same<T, bf16>::value;
template <class T>
inline constexpr bool is_integer = !is_float<T> && !is_small_float<T> && !is_bool<T>;

}  // namespace detail

#define GEN_COMPARE(type, op) \
    GEN_DEVICE constexpr bool operator op(type a, type b) { return float(a) op float(b); }
#define GEN_COMPARISONS(type)                                             \
    GEN_COMPARE(type, ==) GEN_COMPARE(type, !=) GEN_COMPARE(type, <)      \
    GEN_COMPARE(type, <=) GEN_COMPARE(type, >) GEN_COMPARE(type, >=)
GEN_COMPARISONS(half)
GEN_COMPARISONS(bf16)
#undef GEN_COMPARISONS
#undef GEN_COMPARE

// ---------------------------------------------------------------------------------------------------------
// Limits
// ---------------------------------------------------------------------------------------------------------

/// The greatest value of a type: infinity for floating types.
template <class T>
GEN_DEVICE constexpr T highest()
{
    if constexpr (detail::is_float<T>) {
        return static_cast<T>(detail::float_infinity);
    } else if constexpr (detail::is_small_float<T>) {
        return T(detail::float_infinity);
    } else if constexpr (detail::is_bool<T>) {
        return true;
    } else {
        using U = detail::unsigned_of<T>;
        const bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
        return static_cast<T>(is_signed ? static_cast<U>(static_cast<U>(-1) >> 1) : static_cast<U>(-1));
    }
}

/// The least value of a type: minus infinity for floating types.
template <class T>
GEN_DEVICE constexpr T lowest()
{
    if constexpr (detail::is_float<T>) {
        return -highest<T>();
    } else if constexpr (detail::is_small_float<T>) {
        return T(-detail::float_infinity);
    } else if constexpr (detail::is_bool<T>) {
        return false;
    } else {
        return static_cast<T>(~highest<T>());
    }
}

/// Infinity of a floating type.
template <class T>
GEN_DEVICE constexpr T infinity()
{
    return highest<T>();
}

/// A quiet nan of a floating type.
template <class T>
GEN_DEVICE constexpr T nan()
{
    return T(detail::bits<float>(0x7fc00000u));
}

}  // namespace gen

// ---------------------------------------------------------------------------------------------------------
// Host: groups and lanes on the CPU
// ---------------------------------------------------------------------------------------------------------
#if GEN_HOST

namespace gen {
namespace host {

// Types of their own: no store of a kernel's can be taken for one to them.
enum class group_number : int {};
enum class lane_number : int {};
static thread_local group_number group_index;
static thread_local lane_number lane_index;

// Workgroup memory is static. Each block of it is listed where it is first met, so that a group can begin
// with poison: a kernel that reads what no lane has written must not find the zero it hopes for.
struct lds_block
{
    void* data;
    uint64 size;
    lds_block* next;
};
static thread_local lds_block* lds_blocks;
static thread_local bool lds_poisoned;

inline void enter_lds(lds_block& block, void* data, uint64 size)
{
    if (block.data) return;
    block = {data, size, lds_blocks};
    lds_blocks = &block;
    if (lds_poisoned) __builtin_memset(data, 0xff, size);
}

inline void poison_lds(bool poison)
{
    lds_poisoned = poison;
    if (!poison) return;
    for (lds_block* block = lds_blocks; block; block = block->next)
        __builtin_memset(block->data, 0xff, block->size);
}

// The order in which groups run: all of them at once for seed 0, else a permutation of chunks of them.
struct group_order
{
    long long chunk, chunks, step, start;

    group_order(long long count, long long chunk_size, unsigned seed)
        : chunk(chunk_size), chunks((count + chunk_size - 1) / chunk_size), step(1), start(0)
    {
        if (seed == 0 || chunks < 2) return;
        start = seed % chunks;
        step = 1 + seed * 2654435761ull % static_cast<unsigned long long>(chunks);
        while (common_divisor(step, chunks) != 1) step++;
    }
    static long long common_divisor(long long a, long long b)
    {
        while (b) {
            const long long rest = a % b;
            a = b;
            b = rest;
        }
        return a;
    }
    long long first(long long i) const { return (start + i * step) % chunks * chunk; }
};

GEN_DEVICE void run_lane(int lane) { lane_index = static_cast<lane_number>(lane); }

#if GEN_LANE_LOOPS

// The kernel's text has the loops: GEN_WAVES over the waves of the group, in it GEN_LANES over the lanes of the wave.
// With a seed, waves take turns in another order each time, and the lanes of some go from the last to the first: a
// missing barrier shows.

static constexpr int waves = (GEN_BLOCK + GEN_WAVE_SIZE - 1) / GEN_WAVE_SIZE;
static thread_local int wave_index;
static thread_local bool shuffled;
static thread_local uint64 random_state;

__attribute__((noinline)) inline int draw(int bound)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int>((random_state >> 33) % static_cast<unsigned>(bound));
}

GEN_DEVICE int first_lane() { return wave_index * GEN_WAVE_SIZE; }
GEN_DEVICE int last_lane()
{
    const int whole = first_lane() + GEN_WAVE_SIZE;
    return GEN_BLOCK % GEN_WAVE_SIZE != 0 && whole > GEN_BLOCK ? GEN_BLOCK : whole;
}

struct wave_turns
{
    int done = 0, start = 0;
    bool descending = false;

    GEN_DEVICE wave_turns()
    {
        if (!shuffled) return;
        start = draw(waves);
        descending = draw(2);
    }
    GEN_DEVICE bool next()
    {
        const int turn = (start + done) % waves;
        wave_index = descending ? waves - 1 - turn : turn;
        return done++ < waves;
    }
};

// Runs of consecutive lanes: all lanes of the wave, or one by one from the last.
struct lane_runs
{
    int begin = first_lane(), first = last_lane(), last = first;
    bool one_by_one = shuffled && draw(2);

    GEN_DEVICE bool next()
    {
        last = first;
        first = one_by_one ? last - 1 : begin;
        return last > begin;
    }
};

#define GEN_WAVES for (gen::host::wave_turns gen_turns; gen_turns.next();)
#define GEN_LANES                                              \
    for (gen::host::lane_runs gen_runs; gen_runs.next();)      \
        for (int gen_lane = gen_runs.first;                    \
             gen::host::run_lane(gen_lane), gen_lane < gen_runs.last; gen_lane++)

// With a seed, what lanes copy while they go on is brought as late as it may be: a kernel that does not wait for it
// finds poison.
struct late_copy
{
    unsigned char* to;
    const unsigned char* from;
    int bytes, group;

    void make() const
    {
        if (from)
            __builtin_memcpy(to, from, bytes);
        else
            __builtin_memset(to, 0, bytes);
    }
};

struct late_copies
{
    late_copy* items = nullptr;
    int count = 0, room = 0, groups = 0;

    void begin() { count = groups = 0; }
    // No destructor: compilers without the C++ runtime cannot link one for a thread's variables.
    void end()
    {
        __builtin_free(items);
        items = nullptr;
        count = room = 0;
    }
    void add(late_copy copy)
    {
        if (count == room) {
            room = 2 * room + 16;
            items = static_cast<late_copy*>(__builtin_realloc(items, room * sizeof(late_copy)));
        }
        copy.group = groups;
        items[count++] = copy;
    }
    void add_for(int group, late_copy copy)
    {
        add(copy);
        items[count - 1].group = group;
    }
    void bring_all_but(int pending) { bring_before(groups - pending); }
    void bring_before(int group)
    {
        int kept = 0;
        for (int i = 0; i < count; i++) {
            if (items[i].group < group)
                items[i].make();
            else
                items[kept++] = items[i];
        }
        count = kept;
    }
};
static thread_local late_copies copies_of_lanes[GEN_BLOCK];

/// Runs groups first to last - 1 in an order chosen by a seed.
template <class Kernel>
inline void run(const Kernel& kernel, long long first, long long last, unsigned seed)
{
    shuffled = seed != 0;
    random_state = seed;
    const group_order order(last - first, 1, seed);
    for (long long i = 0; i < last - first; i++) {
        poison_lds(shuffled);
        for (late_copies& copies : copies_of_lanes) copies.begin();
        group_index = static_cast<group_number>(first + order.first(i));
        kernel();
    }
    for (late_copies& copies : copies_of_lanes) copies.end();
}

#else

/// Runs groups first to last - 1, lane after lane, in an order chosen by a seed.
template <class Kernel>
inline void run(const Kernel& kernel, long long first, long long last, unsigned seed)
{
    const long long count = last - first;
    if (count <= 0) return;
    const group_order order(count, seed == 0 ? count : 16, seed);
    for (long long i = 0; i < order.chunks; i++) {
        const long long begin = first + order.first(i);
        const long long end = begin + order.chunk < last ? begin + order.chunk : last;
        for (long long group = begin; group < end; group++) {
            poison_lds(seed != 0);
            group_index = static_cast<group_number>(group);
            for (int lane = 0; lane < GEN_BLOCK; lane++) {
                run_lane(lane);
                kernel();
            }
        }
    }
}

#endif

}  // namespace host

#if GEN_LANE_LOOPS

/// A value of each lane of the workgroup.
template <class T>
struct lanes
{
    T items[GEN_BLOCK];

    lanes() = default;
    GEN_DEVICE lanes(const T& value)
    {
        for (T& item : items) item = value;
    }
    GEN_DEVICE T& operator[](int lane) { return items[lane]; }
    GEN_DEVICE const T& operator[](int lane) const { return items[lane]; }

    /// The results of an operation across lanes, for the lanes of the wave that is running.
    template <class Operation>
    GEN_DEVICE void operator=(const Operation& operation)
    {
        operation.run(items);
    }
};

#endif
}  // namespace gen
#endif

namespace gen {

// ---------------------------------------------------------------------------------------------------------
// Lanes and groups
// ---------------------------------------------------------------------------------------------------------

GEN_DEVICE int workgroup_id()
{
#if GEN_AMD
    return static_cast<int>(__builtin_amdgcn_workgroup_id_x());
#elif GEN_NVIDIA
    return static_cast<int>(blockIdx.x);
#else
    return static_cast<int>(host::group_index);
#endif
}

/// The lane's number in its workgroup.
GEN_DEVICE int local_id()
{
#if GEN_AMD
    return static_cast<int>(__builtin_amdgcn_workitem_id_x());
#elif GEN_NVIDIA
    return static_cast<int>(threadIdx.x);
#else
    return static_cast<int>(host::lane_index);
#endif
}

GEN_DEVICE int workgroup_size()
{
#if GEN_AMD
    return static_cast<int>(__builtin_amdgcn_workgroup_size_x());
#elif GEN_NVIDIA
    return static_cast<int>(blockDim.x);
#else
    return GEN_BLOCK;
#endif
}

/// Returns when the stream's earlier kernels are done. A kernel that begins so may be started while their last workgroups
/// end. None says that the next one may be started earlier: with many workgroups that costs up to a fifth of the time.
GEN_DEVICE void await_earlier_kernels()
{
#if GEN_NVIDIA && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The lane's number in the launch. If workgroups are said to have `Block` lanes, their size is not loaded from memory.
template <int Block = 0, class I = int>
GEN_DEVICE I global_id()
{
    return static_cast<I>(workgroup_id()) * (Block > 0 ? Block : workgroup_size()) + local_id();
}

/// The lane's number in its wave.
GEN_DEVICE int lane_id() { return local_id() % GEN_WAVE_SIZE; }

/// The wave's number in its workgroup, the same in all its lanes.
GEN_DEVICE int wave_id()
{
#if GEN_AMD
    return __builtin_amdgcn_readfirstlane(local_id() / GEN_WAVE_SIZE);
#else
    return local_id() / GEN_WAVE_SIZE;
#endif
}

/// All lanes of the workgroup meet here; what they wrote before, to any memory, is seen by all afterwards.
template <bool Together = true>
GEN_DEVICE void barrier()
{
#if GEN_AMD
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#elif GEN_NVIDIA
    __syncthreads();
#else
    static_assert(GEN_BLOCK == 1 || !Together, "on the host, lanes meet in operators of the role `sync` only");
#endif
}

/// The same for workgroup memory only, without waiting for global memory.
template <bool Together = true>
GEN_DEVICE void lds_barrier()
{
#if GEN_AMD && __clang_major__ >= 19
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
#else
    barrier<Together>();
#endif
}

// ---------------------------------------------------------------------------------------------------------
// Integers
// ---------------------------------------------------------------------------------------------------------

// Signed overflow is undefined in C++; these wrap, as tensor arithmetic does. Other types compute as usual.
#define GEN_WRAPPING(name, op)                                                                    \
    template <class T>                                                                            \
    GEN_DEVICE constexpr T name(T a, T b)                                                         \
    {                                                                                             \
        if constexpr (detail::is_integer<T>) {                                                    \
            using U = detail::unsigned_of<T>;                                                     \
            const uint64 wide = static_cast<uint64>(static_cast<U>(a)) op static_cast<U>(b);      \
            return static_cast<T>(static_cast<U>(wide));                                          \
        } else {                                                                                  \
            return a op b;                                                                        \
        }                                                                                         \
    }
GEN_WRAPPING(add, +)
GEN_WRAPPING(sub, -)
GEN_WRAPPING(mul, *)
#undef GEN_WRAPPING

/// a / b towards zero, which never traps: division by zero gives 0, lowest / -1 wraps.
template <class A, class B>
GEN_DEVICE constexpr detail::common<A, B> trunc_div(A a, B b)
{
    using T = detail::common<A, B>;
    const T dividend = static_cast<T>(a), divisor = static_cast<T>(b);
    const bool minus_one = lowest<T>() < 0 && divisor == static_cast<T>(-1);
    const T quotient = static_cast<T>(dividend / (divisor == 0 || minus_one ? static_cast<T>(1) : divisor));
    return divisor == 0 ? static_cast<T>(0) : minus_one ? sub(static_cast<T>(0), dividend) : quotient;
}

/// The remainder of trunc_div: it has the sign of a. 0 where b is 0.
template <class A, class B>
GEN_DEVICE constexpr detail::common<A, B> trunc_mod(A a, B b)
{
    using T = detail::common<A, B>;
    const T rest = sub(static_cast<T>(a), mul(trunc_div(a, b), static_cast<T>(b)));
    return b == 0 ? static_cast<T>(0) : rest;
}

/// a / b towards minus infinity, in the same way.
template <class A, class B>
GEN_DEVICE constexpr detail::common<A, B> floor_div(A a, B b)
{
    using T = detail::common<A, B>;
    const T rest = trunc_mod(a, b);
    const bool below = rest != 0 && (rest < 0) != (b < 0);
    return sub(trunc_div(a, b), static_cast<T>(below));
}

/// The remainder of floor_div: it has the sign of b. 0 where b is 0.
template <class A, class B>
GEN_DEVICE constexpr detail::common<A, B> floor_mod(A a, B b)
{
    using T = detail::common<A, B>;
    const T rest = trunc_mod(a, b);
    const bool below = rest != 0 && (rest < 0) != (b < 0);
    return below ? add(rest, static_cast<T>(b)) : rest;
}

/// -1, 0 or 1; nan of nan.
template <class T>
GEN_DEVICE constexpr T sign(T x)
{
    const T zero = static_cast<T>(0), one = static_cast<T>(1);
    return x > zero ? one : x < zero ? static_cast<T>(-1) : static_cast<T>(x + zero);
}

/// a * 2^b, wrapped; 0 where b is negative or not below the width.
template <class T>
GEN_DEVICE constexpr T shift_left(T a, T b)
{
    using U = detail::unsigned_of<T>;
    const bool is_within = static_cast<U>(b) < 8 * sizeof(T);
    const uint64 wide = static_cast<uint64>(static_cast<U>(a)) << (is_within ? static_cast<int>(b) : 0);
    return is_within ? static_cast<T>(static_cast<U>(wide)) : static_cast<T>(0);
}

/// a / 2^b, rounded down; only the sign is left where b is negative or not below the width.
template <class T>
GEN_DEVICE constexpr T shift_right(T a, T b)
{
    using U = detail::unsigned_of<T>;
    const bool is_within = static_cast<U>(b) < 8 * sizeof(T);
    const T gone = a < 0 ? static_cast<T>(-1) : static_cast<T>(0);
    return is_within ? static_cast<T>(a >> (is_within ? static_cast<int>(b) : 0)) : gone;
}

// ---------------------------------------------------------------------------------------------------------
// Arithmetic that every target has
// ---------------------------------------------------------------------------------------------------------

#define GEN_BUILTIN(name, builtin)                                     \
    GEN_DEVICE float name(float x) { return __builtin_##builtin##f(x); } \
    GEN_DEVICE double name(double x) { return __builtin_##builtin(x); }
#define GEN_LIBRARY(name, function)                            \
    GEN_DEVICE float name(float x) { return ::function##f(x); } \
    GEN_DEVICE double name(double x) { return ::function(x); }
#if GEN_NVIDIA
GEN_LIBRARY(floor, floor)
GEN_LIBRARY(ceil, ceil)
GEN_LIBRARY(trunc, trunc)
GEN_LIBRARY(round, rint)
GEN_LIBRARY(sqrt, sqrt)
GEN_DEVICE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
GEN_DEVICE double fma(double a, double b, double c) { return ::fma(a, b, c); }
#else
GEN_BUILTIN(floor, floor)
GEN_BUILTIN(ceil, ceil)
GEN_BUILTIN(trunc, trunc)
GEN_BUILTIN(round, rint)  // half to even
GEN_BUILTIN(sqrt, sqrt)
GEN_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
GEN_DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#endif

template <class T>
GEN_DEVICE constexpr bool isnan(T x)
{
    if constexpr (detail::is_integer<T> || detail::is_bool<T>) return false;
    return x != x;
}

/// |x|; the absolute value of the lowest integer is itself.
template <class T>
GEN_DEVICE constexpr T abs(T x)
{
    if constexpr (detail::is_float<T>) {
        using U = detail::unsigned_of<T>;
        return detail::bits<T>(static_cast<U>(detail::bits<U>(x) & (static_cast<U>(-1) >> 1)));
    } else if constexpr (detail::is_small_float<T>) {
        return T::from_bits(x.word & 0x7fff);
    } else if constexpr (detail::is_bool<T>) {
        return x;
    } else {
        return x < 0 ? sub(static_cast<T>(0), x) : x;
    }
}

template <class T>
GEN_DEVICE constexpr bool isinf(T x)
{
    if constexpr (detail::is_integer<T> || detail::is_bool<T>) return false;
    return abs(x) == highest<T>();
}

namespace detail {

template <class T>
GEN_DEVICE T smaller(T a, T b)
{
    return a < b || isnan(a) ? a : b;
}

template <class T>
GEN_DEVICE T greater(T a, T b)
{
    return a > b || isnan(a) ? a : b;
}

// One instruction, where there is one.
#if GEN_AMD
#if __has_builtin(__builtin_elementwise_minimum)
GEN_DEVICE float smaller(float a, float b) { return __builtin_elementwise_minimum(a, b); }
GEN_DEVICE double smaller(double a, double b) { return __builtin_elementwise_minimum(a, b); }
GEN_DEVICE float greater(float a, float b) { return __builtin_elementwise_maximum(a, b); }
GEN_DEVICE double greater(double a, double b) { return __builtin_elementwise_maximum(a, b); }
#endif
#elif GEN_NVIDIA
GEN_DEVICE float smaller(float a, float b)
{
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
GEN_DEVICE float greater(float a, float b)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
#endif

}  // namespace detail

/// The smaller of two values; nan if either is.
template <class A, class B>
GEN_DEVICE detail::common<A, B> min(A a, B b)
{
    using T = detail::common<A, B>;
    return detail::smaller(static_cast<T>(a), static_cast<T>(b));
}

/// The greater of two values; nan if either is.
template <class A, class B>
GEN_DEVICE detail::common<A, B> max(A a, B b)
{
    using T = detail::common<A, B>;
    return detail::greater(static_cast<T>(a), static_cast<T>(b));
}

// ---------------------------------------------------------------------------------------------------------
// Halves two at a time
// ---------------------------------------------------------------------------------------------------------

#if GEN_AMD
/// Two halves in a register.
typedef _Float16 half2 __attribute__((ext_vector_type(2)));

namespace detail {
GEN_DEVICE half2 pair(half first, half second)
{
    return half2{bits<_Float16>(first.word), bits<_Float16>(second.word)};
}
GEN_DEVICE half first_of(half2 x) { return half::from_bits(bits<uint16>(static_cast<_Float16>(x[0]))); }
GEN_DEVICE half second_of(half2 x) { return half::from_bits(bits<uint16>(static_cast<_Float16>(x[1]))); }
}  // namespace detail

GEN_DEVICE half2 fma(half2 a, half2 b, half2 c) { return __builtin_elementwise_fma(a, b, c); }
#if __has_builtin(__builtin_elementwise_minimum)
GEN_DEVICE half2 min(half2 a, half2 b) { return __builtin_elementwise_minimum(a, b); }
GEN_DEVICE half2 max(half2 a, half2 b) { return __builtin_elementwise_maximum(a, b); }
#else
GEN_DEVICE half2 min(half2 a, half2 b) { return a < b || a != a ? a : b; }
GEN_DEVICE half2 max(half2 a, half2 b) { return a > b || a != a ? a : b; }
#endif
#elif GEN_NVIDIA
/// Two halves in a register.
struct half2
{
    uint32 word;
};

namespace detail {
GEN_DEVICE half2 pair(half first, half second) { return {first.word | static_cast<uint32>(second.word) << 16}; }
GEN_DEVICE half first_of(half2 x) { return half::from_bits(static_cast<uint16>(x.word)); }
GEN_DEVICE half second_of(half2 x) { return half::from_bits(static_cast<uint16>(x.word >> 16)); }
}  // namespace detail

#define GEN_HALF2(name, instruction)                                                    \
    GEN_DEVICE half2 name(half2 a, half2 b)                                             \
    {                                                                                   \
        half2 result;                                                                   \
        asm(instruction " %0, %1, %2;" : "=r"(result.word) : "r"(a.word), "r"(b.word)); \
        return result;                                                                  \
    }
GEN_HALF2(operator+, "add.rn.f16x2")
GEN_HALF2(operator-, "sub.rn.f16x2")
GEN_HALF2(operator*, "mul.rn.f16x2")
GEN_HALF2(min, "min.NaN.f16x2")
GEN_HALF2(max, "max.NaN.f16x2")
#undef GEN_HALF2
GEN_DEVICE half2 fma(half2 a, half2 b, half2 c)
{
    half2 result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result.word) : "r"(a.word), "r"(b.word), "r"(c.word));
    return result;
}
#endif

namespace detail {

template <class T>
inline constexpr int count_of = 0;
template <int N>
inline constexpr int count_of<array<half, N>> = N;

#if GEN_HOST
template <int N>
GEN_DEVICE float halves_at(const array<half, N>& x, int i) { return float(x[i]); }
GEN_DEVICE float halves_at(half x, int) { return float(x); }

// F of the elements, as floats: a loop of two at a time would not vectorise.
template <class F, class... X>
GEN_DEVICE auto each_of_halves(const X&... x)
{
    array<half, (count_of<X> | ...)> result;
    for (int i = 0; i < result.size(); i++) result[i] = half(F::of(halves_at(x, i)...));
    return result;
}
#else
template <int N>
GEN_DEVICE half2 halves_at(const array<half, N>& x, int i) { return pair(x[i], x[i + 1 < N ? i + 1 : i]); }
GEN_DEVICE half2 halves_at(half x, int) { return pair(x, x); }

// F of the elements of arrays, two at a time, the last of an odd number twice; a half alone stands beside each.
template <class F, class... X>
GEN_DEVICE auto each_of_halves(const X&... x)
{
    array<half, (count_of<X> | ...)> result;
    GEN_UNROLL
    for (int i = 0; i < result.size(); i += 2) {
        const half2 two = F::of(halves_at(x, i)...);
        result[i] = first_of(two);
        if (i + 1 < result.size()) result[i + 1] = second_of(two);
    }
    return result;
}
#endif

}  // namespace detail

/// Arithmetic of all of a lane's halves; an operand that is one half stands beside each of the others'.
namespace halves {

// By structures and not by lambdas: some versions of NVRTC take these for functions of the host.
#define GEN_OF_HALVES(name, result)                         \
    struct name##_of                                        \
    {                                                       \
        template <class T>                                  \
        static GEN_DEVICE T of(T x, T y)                    \
        {                                                   \
            return result;                                  \
        }                                                   \
    };                                                      \
    template <class A, class B>                             \
    GEN_DEVICE auto name(const A& a, const B& b)            \
    {                                                       \
        return detail::each_of_halves<name##_of>(a, b);     \
    }
GEN_OF_HALVES(add, x + y)
GEN_OF_HALVES(sub, x - y)
GEN_OF_HALVES(mul, x * y)
GEN_OF_HALVES(min, gen::min(x, y))
GEN_OF_HALVES(max, gen::max(x, y))
#undef GEN_OF_HALVES

struct fma_of
{
    template <class T>
    static GEN_DEVICE T of(T x, T y, T z)
    {
        return gen::fma(x, y, z);
    }
};
template <class A, class B, class C>
GEN_DEVICE auto fma(const A& a, const B& b, const C& c)
{
    return detail::each_of_halves<fma_of>(a, b, c);
}

}  // namespace halves

namespace detail {

// The remainder of the division of magnitudes, exact: by what is left of long division, bit by bit.
template <class T>
GEN_DEVICE T magnitude_mod(T a, T b)
{
    T step = b;
    while (step <= a - step) step += step;
    while (step >= b && a >= b) {
        a = a >= step ? a - step : a;
        step *= static_cast<T>(0.5);
    }
    return a;
}

template <class T>
GEN_DEVICE T float_trunc_mod(T a, T b)
{
    const T dividend = abs(a), divisor = abs(b);
    const bool is_defined = dividend < highest<T>() && divisor > 0;  // nan compares false
    if (!is_defined) return nan<T>();
    const T rest = divisor < highest<T>() ? magnitude_mod(dividend, divisor) : dividend;
    return bits<unsigned_of<T>>(a) >> (8 * sizeof(T) - 1) ? -rest : rest;
}

template <class T>
GEN_DEVICE T float_floor_mod(T a, T b)
{
    const T rest = float_trunc_mod(a, b);
    const T zero = b < 0 ? -static_cast<T>(0) : static_cast<T>(0);
    return rest == 0 ? zero : (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace detail

/// The remainder of the division rounded towards zero: it has the sign of a.
GEN_DEVICE float trunc_mod(float a, float b) { return detail::float_trunc_mod(a, b); }
GEN_DEVICE double trunc_mod(double a, double b) { return detail::float_trunc_mod(a, b); }

/// The remainder of the division rounded down: it has the sign of b.
GEN_DEVICE float floor_mod(float a, float b) { return detail::float_floor_mod(a, b); }
GEN_DEVICE double floor_mod(double a, double b) { return detail::float_floor_mod(a, b); }

// ---------------------------------------------------------------------------------------------------------
// Conversions
// ---------------------------------------------------------------------------------------------------------

namespace detail {

// Truncates; saturates out of range; nan gives 0. The value that is converted is always in range.
template <class To, class From>
GEN_DEVICE constexpr To float_to_integer(From x)
{
    constexpr bool is_signed = lowest<To>() < 0;
    constexpr From limit = static_cast<From>(highest<To>() / 2 + 1) * 2;  // one more than the greatest
    constexpr From low = is_signed ? -limit : static_cast<From>(0);
    const To inside = static_cast<To>(x > low && x < limit ? x : static_cast<From>(0));
    return x >= limit ? highest<To>() : x <= low ? lowest<To>() : inside;
}

// An integer as a double that rounds on to half or bf16 as the integer itself would: beyond 32 bits the
// lowest 16 only matter as a whole, whether there are any.
template <class From>
GEN_DEVICE constexpr double integer_to_double(From x)
{
    if constexpr (sizeof(From) < 8) {
        return static_cast<double>(x);
    } else {
        const From high = x >> 16;
        const bool is_short = x >> 32 == 0 || x >> 32 == static_cast<From>(-1);
        const double sticky = static_cast<double>(static_cast<From>(high | ((x & 0xffff) != 0))) * 65536.0;
        return is_short ? static_cast<double>(x) : sticky;
    }
}

}  // namespace detail

/// Any scalar as any other. To an integer: from floating types truncating, saturating, nan to 0; from
/// integers wrapping. To bool: whether x is not 0. To a floating type: rounded once, to nearest even.
template <class To, class From>
GEN_DEVICE constexpr To convert(From x)
{
    using namespace detail;
    if constexpr (same<To, From>::value) {
        return x;
    } else if constexpr (is_small_float<From>) {
        return convert<To>(static_cast<float>(x));
    } else if constexpr (is_bool<To>) {
        return x != 0;
    } else if constexpr (is_small_float<To>) {
        if constexpr (is_float<From>) {
            return To(x);
        } else {
            return To(integer_to_double(x));
        }
    } else if constexpr (is_float<From> && is_integer<To>) {
        return float_to_integer<To>(x);
    } else {
        return static_cast<To>(x);
    }
}

// ---------------------------------------------------------------------------------------------------------
// Elementary functions
// ---------------------------------------------------------------------------------------------------------

#if GEN_NVIDIA

GEN_LIBRARY(exp, exp)
GEN_LIBRARY(exp2, exp2)
GEN_LIBRARY(expm1, expm1)
GEN_LIBRARY(sinh, sinh)
GEN_LIBRARY(cosh, cosh)
GEN_LIBRARY(tanh, tanh)
GEN_LIBRARY(erf, erf)
GEN_LIBRARY(log, log)
GEN_LIBRARY(log2, log2)
GEN_LIBRARY(log1p, log1p)
GEN_LIBRARY(sin, sin)
GEN_LIBRARY(cos, cos)
GEN_LIBRARY(tan, tan)
GEN_LIBRARY(asin, asin)
GEN_LIBRARY(acos, acos)
GEN_LIBRARY(atan, atan)
GEN_LIBRARY(asinh, asinh)
GEN_LIBRARY(acosh, acosh)
GEN_LIBRARY(atanh, atanh)
GEN_LIBRARY(rsqrt, rsqrt)
GEN_DEVICE float pow(float x, float y) { return ::powf(x, y); }
GEN_DEVICE double pow(double x, double y) { return ::pow(x, y); }

#else

// Written once for float and double, and without branches, so that loops of them vectorise on the host. The
// polynomials are minimax fits on the reduced ranges; errors stay within 4 units in the last place.

namespace detail {

// Fused where the processor fuses, for steps whose accuracy does not depend on it.
template <class T>
GEN_DEVICE T mad(T a, T b, T c)
{
#if GEN_AMD || defined(__FMA__) || defined(__aarch64__)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

// c0 + x * (c1 + x * (c2 + ...))
template <class T>
GEN_DEVICE T polynomial(T, T c0)
{
    return c0;
}
template <class T, class... Rest>
GEN_DEVICE T polynomial(T x, T c0, Rest... rest)
{
    return mad(x, polynomial(x, rest...), c0);
}

template <class T>
GEN_DEVICE T copy_sign(T magnitude, T sign)
{
    using U = unsigned_of<T>;
    constexpr U mask = static_cast<U>(-1) >> 1;
    return bits<T>(static_cast<U>((bits<U>(magnitude) & mask) | (bits<U>(sign) & ~mask)));
}

template <class T>
GEN_DEVICE bool sign_bit(T x)
{
    using U = unsigned_of<T>;
    return bits<U>(x) >> (8 * sizeof(T) - 1);
}

template <class T>
struct math;

template <>
struct math<float>
{
    static constexpr int mantissa = 23, bias = 127;
    static constexpr float min_normal = 0x1p-126f, two_mantissa = 0x1p23f;
    static constexpr float rounding = 0x1.8p23f;  // adding it leaves an integer in the low bits
    static constexpr float log2_e = 0x1.715476p+0f, ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
    static constexpr float ln2 = 0x1.62e43p-1f, sqrt_half = 0x1.6a09e6p-1f, two_over_pi = 0x1.45f306p-1f;
    static constexpr float half_pi[3] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
    static constexpr float exp_lowest = -104, exp_highest = 89, tanh_one = 10, erf_one = 4, sin_short = 65536;

    // (e^r - 1 - r) / r^2
    GEN_DEVICE static float exp_tail(float r)
    {
        return polynomial(r, 0x1p-1f, 0x1.55548ep-3f, 0x1.55545ep-5f, 0x1.123b84p-7f, 0x1.6db470p-10f);
    }
    // (log((1 + s) / (1 - s)) - 2 s) / s^3, z = s^2
    GEN_DEVICE static float log_tail(float z)
    {
        return polynomial(z, 0x1.555556p-1f, 0x1.999a76p-2f, 0x1.2439a0p-2f, 0x1.e2ddf6p-3f);
    }
    // (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4, z = r^2
    GEN_DEVICE static float sin_tail(float z)
    {
        return polynomial(z, -0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f34p-13f, 0x1.6cbef0p-19f);
    }
    GEN_DEVICE static float cos_tail(float z)
    {
        return polynomial(z, 0x1.55554ap-5f, -0x1.6c0c24p-10f, 0x1.99e3a8p-16f);
    }
    // (asin r - r) / r^3, z = r^2 <= 1/4, and (atan r - r) / r^3, |r| <= tan pi/8
    GEN_DEVICE static float asin_tail(float z)
    {
        return polynomial(z, 0x1.55554cp-3f, 0x1.33388ep-4f, 0x1.6cac44p-5f, 0x1.04a6f8p-5f, 0x1.d7de4ep-7f,
                          0x1.33c5cep-5f);
    }
    GEN_DEVICE static float atan_tail(float z)
    {
        return polynomial(z, -0x1.55554ap-2f, 0x1.9991acp-3f, -0x1.23b696p-3f, 0x1.b1fedp-4f,
                          -0x1.f24054p-5f);
    }
    // erf x / x - 1, z = x^2 <= 1
    GEN_DEVICE static float erf_tail(float z)
    {
        return polynomial(z, 0x1.06eba8p-3f, -0x1.81273ep-2f, 0x1.ce2cf8p-4f, -0x1.b7f90ep-6f, 0x1.5405b2p-8f,
                          -0x1.a3f702p-11f, 0x1.496a38p-14f);
    }
    // log(1 - erf x), 1 <= x <= erf_one
    GEN_DEVICE static float log_erfc(float x)
    {
        return polynomial(x, -0x1.3b4734p-10f, -0x1.1fa5b6p+0f, -0x1.49a3a4p-1f, -0x1.927d4ep-4f,
                          0x1.40c716p-6f, -0x1.3acfb2p-9f, 0x1.1742f4p-13f);
    }
};

template <>
struct math<double>
{
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr double min_normal = 0x1p-1022, two_mantissa = 0x1p52;
    static constexpr double rounding = 0x1.8p52;
    static constexpr double log2_e = 0x1.71547652b82fep+0;
    static constexpr double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    static constexpr double ln2 = 0x1.62e42fefa39efp-1, sqrt_half = 0x1.6a09e667f3bcdp-1;
    static constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
    static constexpr double half_pi[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                          -0x1.f1976b7ed8fbcp-110};
    static constexpr double exp_lowest = -746, exp_highest = 710, tanh_one = 20, erf_one = 6;
    static constexpr double sin_short = 524288;

    GEN_DEVICE static double exp_tail(double r)
    {
        return polynomial(r, 0x1.000000000000bp-1, 0x1.5555555555561p-3, 0x1.5555555550048p-5,
                          0x1.111111110d625p-7, 0x1.6c16c185a6a3bp-10, 0x1.a01a01baeb058p-13,
                          0x1.a019968d3db4bp-16, 0x1.71dddfb530bfcp-19, 0x1.28b054c675ff1p-22,
                          0x1.af85af85be705p-26);
    }
    GEN_DEVICE static double log_tail(double z)
    {
        return polynomial(z, 0x1.5555555555555p-1, 0x1.9999999999d95p-2, 0x1.2492492431a8dp-2,
                          0x1.c71c7252e2289p-3, 0x1.745cdfce8771fp-3, 0x1.3b206fc97fe06p-3,
                          0x1.0f615e2347169p-3, 0x1.0f3e53a8c1941p-3);
    }
    GEN_DEVICE static double sin_tail(double z)
    {
        return polynomial(z, -0x1.5555555555547p-3, 0x1.111111110f5f9p-7, -0x1.a01a019bbdfedp-13,
                          0x1.71de352cb1132p-19, -0x1.ae5e29c26cac9p-26, 0x1.5d810754608b7p-33);
    }
    GEN_DEVICE static double cos_tail(double z)
    {
        return polynomial(z, 0x1.555555555554bp-5, -0x1.6c16c16c14ef8p-10, 0x1.a01a019c6f2b7p-16,
                          -0x1.27e4f7d7a9c26p-22, 0x1.1ee9c86f6f3bbp-29, -0x1.8f9ba4ebda43bp-37);
    }
    GEN_DEVICE static double asin_tail(double z)
    {
        return polynomial(z, 0x1.5555555555553p-3, 0x1.3333333333a42p-4, 0x1.6db6db6d47f3ap-5,
                          0x1.f1c71ca8a7951p-6, 0x1.6e8b9ae18ca75p-6, 0x1.1c4f86f13eec7p-6,
                          0x1.c980b3e2afcedp-7, 0x1.7ba60bec5cfedp-7, 0x1.36b589e42350ep-7,
                          0x1.484dc87181c94p-7, 0x1.54e507459e898p-11, 0x1.97eeebb182f82p-6,
                          -0x1.adfd40ed2ca1ap-6, 0x1.1411632dff8c1p-5);
    }
    GEN_DEVICE static double atan_tail(double z)
    {
        return polynomial(z, -0x1.5555555555554p-2, 0x1.9999999999664p-3, -0x1.2492492476043p-3,
                          0x1.c71c71b786240p-4, -0x1.745d14c0c472bp-4, 0x1.3b136eb521ce3p-4,
                          -0x1.110c79873cc97p-4, 0x1.e17272610b830p-5, -0x1.ab8003da0f36ap-5,
                          0x1.70f6424c66637p-5, -0x1.124a2b4c25ce3p-5, 0x1.f22ad4e236d40p-7);
    }
    GEN_DEVICE static double erf_tail(double z)
    {
        return polynomial(z, 0x1.06eba8214db68p-3, -0x1.812746b0379bdp-2, 0x1.ce2f21a040d16p-4,
                          -0x1.b82ce311fa93ap-6, 0x1.565bccf92b1e1p-8, -0x1.c02db03dd3bb5p-11,
                          0x1.f9a2baa8a3c1ap-14, -0x1.f4ca4d6971329p-17, 0x1.b97fd39ea3a3ap-20,
                          -0x1.5c072582b2532p-23, 0x1.d71b0530d740cp-27, -0x1.abae2b91af28bp-31);
    }
    GEN_DEVICE static double log_erfc(double x)
    {
        return polynomial(x, -0x1.13888efbdff5ep-21, -0x1.20dd1e30e7271p+0, -0x1.45f635a01e4bbp-1,
                          -0x1.a4ab28a53c93dp-4, 0x1.3719a3d39a652p-6, 0x1.b19e2b1043cddp-12,
                          -0x1.f709d05038959p-10, 0x1.954b5d09cf364p-11, -0x1.1e5e25e627e5dp-13,
                          -0x1.47955e4758447p-16, 0x1.7a0e6f07ff571p-16, -0x1.1fdde942f4d13p-17,
                          0x1.1bda8b5ad94bdp-19, -0x1.8cd50322878f4p-22, 0x1.8a93f1c3ac1e5p-25,
                          -0x1.0b547b18ffe46p-28, 0x1.bc4bc80c33081p-33, -0x1.565d90b07fb2dp-38);
    }
};

// ---- exponentials: x + low = n ln 2 + r, |r| <= ln 2 / 2

template <class T>
struct exp_parts
{
    T n;                 // as a number
    unsigned_of<T> raw;  // and as bits, modulo the word
    T minus_one;         // e^r - 1
};

template <class T>
GEN_DEVICE exp_parts<T> split_exp(T x, T low = 0)
{
    using M = math<T>;
    using U = unsigned_of<T>;
    const T shifted = mad(x, M::log2_e, M::rounding);
    const T n = shifted - M::rounding;
    const T r = mad(n, -M::ln2_low, mad(n, -M::ln2_high, x)) + low;
    return {n, bits<U>(shifted) - bits<U>(M::rounding), mad(r * r, M::exp_tail(r), r)};
}

// e^r 2^n. 2^n is applied in two halves: it may not be a number by itself.
template <class T>
GEN_DEVICE T join_exp(const exp_parts<T>& e)
{
    using M = math<T>;
    using U = unsigned_of<T>;
    const U biased = e.raw + 2 * M::bias;
    const T scale = bits<T>(static_cast<U>((biased >> 1) << M::mantissa));
    const T rest = bits<T>(static_cast<U>((biased - (biased >> 1)) << M::mantissa));
    return (1 + e.minus_one) * scale * rest;
}

// e^(x + low) for x within the limits below.
template <class T>
GEN_DEVICE T exp_in_range(T x, T low = 0)
{
    return join_exp(split_exp(x, low));
}

template <class T>
GEN_DEVICE T clamp_exp(T x)
{
    using M = math<T>;
    const T above = x < M::exp_lowest ? M::exp_lowest : x;
    return above > M::exp_highest ? M::exp_highest : above;
}

template <class T>
GEN_DEVICE T exp_of(T x)
{
    return exp_in_range(clamp_exp(x));
}

template <class T>
GEN_DEVICE T exp2_of(T x)
{
    using M = math<T>;
    using U = unsigned_of<T>;
    constexpr T limit = 2 * M::bias;
    const T above = x < -limit ? -limit : x;
    const T clamped = above > limit ? limit : above;
    const T shifted = clamped + M::rounding;
    const T r = (clamped - (shifted - M::rounding)) * M::ln2;
    return join_exp(exp_parts<T>{0, bits<U>(shifted) - bits<U>(M::rounding), mad(r * r, M::exp_tail(r), r)});
}

// e^x - 1 for x <= 60
template <class T>
GEN_DEVICE T expm1_in_range(T x)
{
    using M = math<T>;
    using U = unsigned_of<T>;
    const exp_parts<T> e = split_exp(x < -50 ? static_cast<T>(-50) : x);
    const T scale = bits<T>(static_cast<U>((e.raw + M::bias) << M::mantissa));
    return e.n == 0 ? e.minus_one : mad(scale, e.minus_one, scale - 1);
}

template <class T>
GEN_DEVICE T expm1_of(T x)
{
    const T near = expm1_in_range(x > 60 ? static_cast<T>(60) : x);
    return copy_sign(x > 60 ? exp_of(x) : near, x);  // -0 stays
}

// Far from 0 both are e^|x| / 2, which does not overflow where e^|x| does.
template <class T>
GEN_DEVICE T half_exp(T magnitude)
{
    const T root = exp_of(magnitude * static_cast<T>(0.5));
    return static_cast<T>(0.5) * root * root;
}

template <class T>
GEN_DEVICE T sinh_of(T x)
{
    const T magnitude = abs(x);
    const T e = expm1_in_range(magnitude > 40 ? static_cast<T>(40) : magnitude);
    const T near = static_cast<T>(0.5) * (e + e / (e + 1));
    return copy_sign(magnitude > 40 ? half_exp(magnitude) : near, x);
}

template <class T>
GEN_DEVICE T cosh_of(T x)
{
    const T magnitude = abs(x);
    const T e = exp_in_range(magnitude > 40 ? static_cast<T>(40) : magnitude);
    const T near = static_cast<T>(0.5) * e + static_cast<T>(0.5) / e;
    return magnitude > 40 ? half_exp(magnitude) : near;
}

template <class T>
GEN_DEVICE T tanh_of(T x)
{
    using M = math<T>;
    const T magnitude = abs(x);
    const T e = expm1_in_range(2 * (magnitude > M::tanh_one ? M::tanh_one : magnitude));
    return copy_sign(e / (e + 2), x);
}

template <class T>
GEN_DEVICE T erf_of(T x)
{
    using M = math<T>;
    const T magnitude = abs(x);
    const T clamped = magnitude > M::erf_one ? M::erf_one : magnitude;
    const T z = magnitude < 1 ? x * x : static_cast<T>(1);
    const T small = mad(x, M::erf_tail(z), x);
    const T large = copy_sign(1 - exp_in_range(M::log_erfc(clamped)), x);
    return magnitude < 1 ? small : large;
}

// ---- logarithms: x = 2^exponent m, m in [sqrt 1/2, sqrt 2), log m through s = (m - 1) / (m + 1)

template <class T>
struct log_parts
{
    T exponent;
    T fraction;  // m - 1
};

template <class T>
GEN_DEVICE log_parts<T> split_log(T x)
{
    using M = math<T>;
    using U = unsigned_of<T>;
    const bool is_subnormal = x < M::min_normal;
    const U word = bits<U>(is_subnormal ? x * M::two_mantissa : x) + (bits<U>(T(1)) - bits<U>(M::sqrt_half));
    const U field = word >> M::mantissa;
    // The field of the exponent becomes a number by way of the mantissa of 2^mantissa.
    const T biased = bits<T>(static_cast<U>(field | bits<U>(M::two_mantissa))) - M::two_mantissa;
    const T exponent = biased - M::bias;
    const U mask = (static_cast<U>(1) << M::mantissa) - 1;
    const T m = bits<T>(static_cast<U>((word & mask) + bits<U>(M::sqrt_half)));
    return {is_subnormal ? exponent - M::mantissa : exponent, m - 1};
}

// log m of the fraction m - 1, plus something small
template <class T>
GEN_DEVICE T log_of_fraction(T f, T low)
{
    const T s = f / (2 + f), z = s * s;
    const T half_square = f * f * static_cast<T>(0.5);
    return f - (half_square - mad(s, half_square + z * math<T>::log_tail(z), low));
}

// The values at 0, infinity, nan and below 0 take the place of what the formula gives there.
template <class T>
GEN_DEVICE T log_domain(T x, T finite)
{
    return x > 0 ? (x < highest<T>() ? finite : x) : x == 0 ? lowest<T>() : nan<T>();
}

template <class T>
GEN_DEVICE T log_of(T x)
{
    using M = math<T>;
    const log_parts<T> p = split_log(x);
    const T log_m = log_of_fraction(p.fraction, p.exponent * M::ln2_low);
    return log_domain(x, mad(p.exponent, M::ln2_high, log_m));
}

template <class T>
GEN_DEVICE T log2_of(T x)
{
    using M = math<T>;
    const log_parts<T> p = split_log(x);
    return log_domain(x, mad(log_of_fraction(p.fraction, static_cast<T>(0)), M::log2_e, p.exponent));
}

// log(1 + x): what the rounding of 1 + x loses is put back by x / ((1 + x) - 1).
template <class T>
GEN_DEVICE T log1p_of(T x)
{
    const T sum = 1 + x;
    const T corrected = log_of(sum) * (x / (sum - 1));
    return sum == 1 || sum == highest<T>() ? x : corrected;
}

// Powers: the logarithm of |x| as a pair of numbers, so that its error times y stays small.
template <class T>
GEN_DEVICE T pow_of_magnitude(T magnitude, T y)
{
    using M = math<T>;
    const log_parts<T> p = split_log(magnitude);
    const T f = p.fraction, d = 2 + f, d_low = f - (d - 2);
    const T inverse = 1 / d, s = f * inverse, z = s * s;
    const T s_low = (fma(-s, d, f) - s * d_low) * inverse;
    const T whole = p.exponent * M::ln2_high;
    const T sum = whole + 2 * s;
    const T tail = mad(p.exponent, M::ln2_low, mad(s * z, M::log_tail(z), 2 * s_low));
    const T sum_low = ((whole - sum) + 2 * s) + tail;
    const T log_high = sum + sum_low, log_low = sum_low - (log_high - sum);

    const T product = y * log_high;
    const T product_low = fma(y, log_high, -product) + y * log_low;
    const T clamped = clamp_exp(product);
    return exp_in_range(clamped, clamped == product ? product_low : static_cast<T>(0));
}

template <class T>
GEN_DEVICE T pow_of(T x, T y)
{
    // The conditions are joined without short circuits: those would be branches.
    constexpr T zero = 0, one = 1, inf = highest<T>();
    const T magnitude = abs(x);
    const bool is_integer = trunc(y) == y;
    const bool is_odd = is_integer & (trunc(y / 2) * 2 != y);
    const bool is_power_finite = (magnitude != 0) & (magnitude != inf);
    T result = pow_of_magnitude(magnitude, y);
    const T limit = ((y > 0) == (magnitude == 0)) ? zero : inf;
    result = is_power_finite ? result : limit;
    const T limit_in_y = ((magnitude > 1) == (y > 0)) ? inf : zero;
    result = abs(y) == inf ? (magnitude == 1 ? one : limit_in_y) : result;
    result = copy_sign(result, (sign_bit(x) & is_odd) ? -one : one);
    const bool is_undefined = ((x < 0) & !is_integer & (magnitude != inf)) | (x != x) | (y != y);
    result = is_undefined ? nan<T>() : result;
    return ((x == 1) | (y == 0)) ? one : result;
}

// ---- sine and cosine: |x| = quadrant pi/2 + r, |r| <= pi/4

template <class T>
struct angle
{
    T r;
    uint32 quadrant;
};

// 2 / pi in binary, after 64 zeros: enough for every double.
GEN_CONSTANT uint32 two_over_pi_bits[42] = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
    0xf0cfbc20, 0x9af4361d};

// 32 bits of 2 / pi from a word and a bit in it on. The table's bit 64 has the weight 1/2.
GEN_DEVICE uint32 two_over_pi_from(uint32 word, uint32 bit)
{
    const uint64 pair = static_cast<uint64>(two_over_pi_bits[word]) << 32 | two_over_pi_bits[word + 1];
    return static_cast<uint32>(pair << bit >> 32);
}

// Large arguments, after Payne and Hanek: of x times 2 / pi only what is not a multiple of 4 is computed, in
// fixed point: 2 bits of quadrant, then the fraction. x = mantissa 2^exponent.
GEN_DEVICE angle<float> reduce_long(float x)
{
    const uint32 word = bits<uint32>(x);
    const uint64 mantissa = (word & 0x7fffffu) | 0x800000u;
    const uint32 field = word >> 23 & 0xff;
    const uint32 first = (field > 128 ? field : 128) - 150 + 62;  // a smaller x is not for here
    const uint32 w = first / 32, b = first % 32;
    const uint64 product = (mantissa * two_over_pi_from(w, b) << 32) + mantissa * two_over_pi_from(w + 1, b) +
                           (mantissa * two_over_pi_from(w + 2, b) >> 32);
    const uint64 quadrant = (product + (1ull << 61)) >> 62;
    const uint64 fraction = product - (quadrant << 62);
    // In two parts that every processor converts, without the last bit.
    const double high = static_cast<int32>(fraction >> 32);
    const double low = static_cast<int32>(fraction >> 1 & 0x7fffffff);
    const double r = (high * 0x1p+31 + low) * 0x1.921fb54442d18p-61;
    return {static_cast<float>(r), static_cast<uint32>(quadrant)};
}

GEN_DEVICE angle<double> reduce_long(double x)
{
    const uint64 word = bits<uint64>(x);
    const uint64 mantissa = (word & 0xfffffffffffffull) | 0x10000000000000ull;
    const uint64 low = mantissa & 0xffffffffu, high = mantissa >> 32;
    const uint32 first = static_cast<uint32>(word >> 52 & 0x7ff) - 1075 + 62;
    // The product in words of 32 bits, the lowest first; what goes beyond the sixth is a multiple of 4.
    uint64 words[8] = {};
    GEN_UNROLL
    for (int i = 0; i < 6; i++) {
        const uint64 factor = two_over_pi_from(first / 32 + 5 - i, first % 32);
        const uint64 sum = words[i] + low * factor;
        const uint64 next = words[i + 1] + high * factor + (sum >> 32);
        words[i] = sum & 0xffffffffu;
        words[i + 1] = next & 0xffffffffu;
        words[i + 2] = next >> 32;
    }
    const uint64 top = words[5] << 32 | words[4], rest = words[3] << 32 | words[2];
    const uint64 quadrant = (top + (1ull << 61)) >> 62;
    const int64 fraction = static_cast<int64>(top - (quadrant << 62));
    const double leading = static_cast<double>(fraction);
    const double trailing = static_cast<double>(fraction - static_cast<int64>(leading)) +
                            static_cast<double>(rest) * 0x1p-64;
    return {(leading + trailing) * 0x1.921fb54442d18p-62, static_cast<uint32>(quadrant)};
}

template <class T>
GEN_DEVICE angle<T> reduce_angle(T magnitude)
{
    using M = math<T>;
    const T shifted = fma(magnitude, M::two_over_pi, M::rounding);
    const T n = shifted - M::rounding;
    const T r = fma(n, -M::half_pi[2], fma(n, -M::half_pi[1], fma(n, -M::half_pi[0], magnitude)));
    const uint32 quadrant = static_cast<uint32>(bits<unsigned_of<T>>(shifted));
    const bool is_short = magnitude < M::sin_short;
#if GEN_HOST
    // Both ways and chosen by a mask, so that a loop over floats vectorises.
    if constexpr (sizeof(T) == sizeof(float)) {
        const angle<T> far = reduce_long(magnitude);
        const uint32 mask = mask_if(is_short);
        return {bits<T>((bits<uint32>(r) & mask) | (bits<uint32>(far.r) & ~mask)),
                (quadrant & mask) | (far.quadrant & ~mask)};
    }
#endif
    if (is_short) return {r, quadrant};
    return reduce_long(magnitude);
}

// sin of r plus so many quadrants
template <class T>
GEN_DEVICE T sin_of_angle(T r, uint32 quadrant)
{
    using M = math<T>;
    using U = unsigned_of<T>;
    const T z = r * r;
    const T sine = mad(r * z, M::sin_tail(z), r);
    const T cosine = mad(z * z, M::cos_tail(z), 1 - z * static_cast<T>(0.5));
    const U choice = 0 - static_cast<U>(quadrant & 1);
    const U sign = static_cast<U>(quadrant & 2) << (8 * sizeof(T) - 2);
    return bits<T>(static_cast<U>(((bits<U>(cosine) & choice) | (bits<U>(sine) & ~choice)) ^ sign));
}

template <class T>
GEN_DEVICE T tan_of(T x)
{
    const angle<T> a = reduce_angle(abs(x));
    const T value = sin_of_angle(a.r, a.quadrant) / sin_of_angle(a.r, a.quadrant + 1);
    return abs(x) < highest<T>() ? (sign_bit(x) ? -value : value) : nan<T>();
}

template <class T>
GEN_DEVICE T sin_of(T x)
{
    const angle<T> a = reduce_angle(abs(x));
    const T value = sin_of_angle(a.r, a.quadrant);
    return abs(x) < highest<T>() ? (sign_bit(x) ? -value : value) : nan<T>();
}

template <class T>
GEN_DEVICE T cos_of(T x)
{
    const angle<T> a = reduce_angle(abs(x));
    const T value = sin_of_angle(a.r, a.quadrant + 1);
    return abs(x) < highest<T>() ? value : nan<T>();
}

// ---- inverse sine, cosine and tangent

// asin of |x| <= 1/2; beyond, acos |x| = 2 asin sqrt((1 - |x|) / 2) by way of the same polynomial.
template <class T>
struct arc_parts
{
    bool is_small;
    T arc;
};

template <class T>
GEN_DEVICE arc_parts<T> split_arc(T x)
{
    const T magnitude = abs(x);
    const bool is_small = magnitude <= static_cast<T>(0.5);
    const T z = is_small ? x * x : (1 - magnitude) * static_cast<T>(0.5);
    const T root = is_small ? magnitude : sqrt(z);
    const T arc = mad(root * z, math<T>::asin_tail(z), root);
    return {is_small, is_small ? arc : 2 * arc};
}

template <class T>
GEN_DEVICE T asin_of(T x)
{
    using M = math<T>;
    const arc_parts<T> p = split_arc(x);
    const T near_one = M::half_pi[0] - (p.arc - M::half_pi[1]);
    return copy_sign(p.is_small ? p.arc : near_one, x);
}

template <class T>
GEN_DEVICE T acos_of(T x)
{
    using M = math<T>;
    const arc_parts<T> p = split_arc(x);
    const T signed_arc = copy_sign(p.arc, x);
    const T middle = M::half_pi[0] - (signed_arc - M::half_pi[1]);
    const T outer = x < 0 ? 2 * M::half_pi[0] - (p.arc - 2 * M::half_pi[1]) : p.arc;
    return p.is_small ? middle : outer;
}

// atan |x| = pi/2 + atan(-1 / |x|) or pi/4 + atan((|x| - 1) / (|x| + 1)), whichever is near 0
template <class T>
GEN_DEVICE T atan_of(T x)
{
    using M = math<T>;
    const T magnitude = abs(x);
    const bool is_large = magnitude > static_cast<T>(2.414213562373095);
    const bool is_small = magnitude < static_cast<T>(0.41421356237309503);
    const T numerator = is_large ? static_cast<T>(-1) : is_small ? magnitude : magnitude - 1;
    const T denominator = is_large ? magnitude : is_small ? static_cast<T>(1) : magnitude + 1;
    const T share = is_large ? static_cast<T>(1) : is_small ? static_cast<T>(0) : static_cast<T>(0.5);
    const T r = numerator / denominator, z = r * r;
    const T tail = mad(r * z, M::atan_tail(z), share * M::half_pi[1]);
    return copy_sign(share * M::half_pi[0] + (r + tail), x);
}

// ---- inverse hyperbolic functions, by logarithms; beyond 10^9 a square root of x^2 + 1 or x^2 - 1 is x

template <class T>
GEN_DEVICE T log_of_twice(T x)
{
    return log_of(x) + static_cast<T>(0.69314718055994530942);
}

template <class T>
GEN_DEVICE T asinh_of(T x)
{
    const T magnitude = abs(x);
    const bool is_large = magnitude > static_cast<T>(1e9);
    const T m = is_large ? static_cast<T>(1) : magnitude;
    const T near = log1p_of(m + m * m / (1 + sqrt(m * m + 1)));
    return copy_sign(is_large ? log_of_twice(magnitude) : near, x);
}

template <class T>
GEN_DEVICE T acosh_of(T x)
{
    const bool is_large = x > static_cast<T>(1e9);
    const T above = (is_large ? static_cast<T>(1) : x) - 1;
    const T near = log1p_of(above + sqrt(above * (above + 2)));
    return x < 1 ? nan<T>() : is_large ? log_of_twice(x) : near;
}

template <class T>
GEN_DEVICE T atanh_of(T x)
{
    const T magnitude = abs(x);
    return copy_sign(static_cast<T>(0.5) * log1p_of(2 * magnitude / (1 - magnitude)), x);
}

}  // namespace detail

#define GEN_FUNCTION(name)                                            \
    GEN_DEVICE float name(float x) { return detail::name##_of(x); }   \
    GEN_DEVICE double name(double x) { return detail::name##_of(x); }

GEN_FUNCTION(expm1)
GEN_FUNCTION(sinh)
GEN_FUNCTION(cosh)
GEN_FUNCTION(tanh)
GEN_FUNCTION(erf)
GEN_FUNCTION(log1p)
GEN_FUNCTION(sin)
GEN_FUNCTION(cos)
GEN_FUNCTION(tan)
GEN_FUNCTION(asin)
GEN_FUNCTION(acos)
GEN_FUNCTION(atan)
GEN_FUNCTION(asinh)
GEN_FUNCTION(acosh)
GEN_FUNCTION(atanh)
GEN_DEVICE float pow(float x, float y) { return detail::pow_of(x, y); }
GEN_DEVICE double pow(double x, double y) { return detail::pow_of(x, y); }

#if GEN_AMD
// clang expands these around the hardware's v_exp, v_log and v_rsq, subnormal values included.
GEN_DEVICE float exp(float x) { return __builtin_expf(x); }
GEN_DEVICE float exp2(float x) { return __builtin_exp2f(x); }
GEN_DEVICE float log(float x) { return __builtin_logf(x); }
GEN_DEVICE float log2(float x) { return __builtin_log2f(x); }
GEN_DEVICE float rsqrt(float x)
{
    const bool is_small = x < 0x1p-100f;
    return __builtin_amdgcn_rsqf(is_small ? x * 0x1p+48f : x) * (is_small ? 0x1p+24f : 1.0f);
}
#else
GEN_DEVICE float exp(float x) { return detail::exp_of(x); }
GEN_DEVICE float exp2(float x) { return detail::exp2_of(x); }
GEN_DEVICE float log(float x) { return detail::log_of(x); }
GEN_DEVICE float log2(float x) { return detail::log2_of(x); }
GEN_DEVICE float rsqrt(float x) { return 1 / sqrt(x); }
#endif
GEN_DEVICE double exp(double x) { return detail::exp_of(x); }
GEN_DEVICE double exp2(double x) { return detail::exp2_of(x); }
GEN_DEVICE double log(double x) { return detail::log_of(x); }
GEN_DEVICE double log2(double x) { return detail::log2_of(x); }
GEN_DEVICE double rsqrt(double x) { return 1 / sqrt(x); }

#undef GEN_FUNCTION
#endif

/// 2 to the power of x, within 3e-7 of it; what is below the normal numbers may be 0.
GEN_DEVICE float exp2_near(float x)
{
#if GEN_NVIDIA
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#elif GEN_AMD
    return __builtin_amdgcn_exp2f(x);
#else
    return exp2(x);
#endif
}

/// One over x, within 1.2e-7 of it; x or the result may be taken for 0 below the normal numbers.
GEN_DEVICE float recip_near(float x)
{
#if GEN_NVIDIA
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#elif GEN_AMD
    return __builtin_amdgcn_rcpf(x);
#else
    return 1.0f / x;
#endif
}

#undef GEN_BUILTIN
#undef GEN_LIBRARY

// ---------------------------------------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------------------------------------

namespace detail {

// The alignment a vector access may rely on: its size's greatest power of two, at most 16.
template <class T, int N>
GEN_DEVICE constexpr int vector_alignment()
{
    const int bytes = static_cast<int>(sizeof(T)) * N;
    const int power = bytes & -bytes;
    return power < 16 ? power : 16;
}

// nvcc makes one access of a structure with this alignment; clang of a copy whose alignment it knows.
template <class T, int N>
struct alignas(vector_alignment<T, N>()) aligned_array
{
    T items[N];
};

template <int N, class T>
GEN_DEVICE void read_vector(T* to, const T* from)
{
#if GEN_NVIDIA
    const auto chunk = *reinterpret_cast<const aligned_array<T, N>*>(from);
    GEN_UNROLL
    for (int i = 0; i < N; i++) to[i] = chunk.items[i];
#elif GEN_AMD
    constexpr int alignment = vector_alignment<T, N>();  // clang 15 crashes on the call in its place
    __builtin_memcpy(to, __builtin_assume_aligned(from, alignment), sizeof(T) * N);
#else
    for (int i = 0; i < N; i++) to[i] = from[i];
#endif
}

template <int N, class T>
GEN_DEVICE void write_vector(T* to, const T* from)
{
#if GEN_NVIDIA
    aligned_array<T, N> chunk;
    GEN_UNROLL
    for (int i = 0; i < N; i++) chunk.items[i] = from[i];
    *reinterpret_cast<aligned_array<T, N>*>(to) = chunk;
#elif GEN_AMD
    constexpr int alignment = vector_alignment<T, N>();
    __builtin_memcpy(__builtin_assume_aligned(to, alignment), from, sizeof(T) * N);
#else
    for (int i = 0; i < N; i++) to[i] = from[i];
#endif
}

// A branch around an access of several elements stays one. GCC 12 makes masked accesses of it where it vectorizes the
// loop around it, and takes the elements of one mask for those of its opposite.
template <int N>
GEN_DEVICE void keep_branch()
{
#if GEN_HOST && defined(__GNUC__) && !defined(__clang__)
    if (N > 1) asm("");
#endif
}

// ok ? a : b on bits: of structures like half it would be a branch, into which the compiler moves loads.
template <class T>
GEN_DEVICE T choose(bool ok, T a, T b)
{
    using U = unsigned_of<T>;
    const U first = bits<U>(a), second = bits<U>(b);
    return bits<T>(static_cast<U>(ok ? first : second));
}

template <int Size, class M>
GEN_DEVICE array<bool, Size> computed(const M& mask)
{
    array<bool, Size> result;
    GEN_UNROLL
    for (int i = 0; i < Size; i++) result[i] = mask[i];
    return result;
}

}  // namespace detail

/// Is it one of the numbers from 0 to below n?
template <class I, class N>
GEN_DEVICE constexpr bool within(I i, N n)
{
    return i >= 0 && i < n;
}

/// The element of an array at an index. Where the index has 32 bits, the array is no longer than 4 GiB: an AMD GPU then takes
/// an offset of 32 bits beside the array's address, which all lanes share.
template <class T, class I>
GEN_DEVICE T* element_at(T* p, I index)
{
#if GEN_AMD
    if constexpr (sizeof(I) == sizeof(unsigned)) {
        const unsigned offset = static_cast<unsigned>(index) * static_cast<unsigned>(sizeof(T));
        return reinterpret_cast<T*>(const_cast<char*>(reinterpret_cast<const char*>(p)) + offset);
    }
#endif
    return p + index;
}

/// Indices into a longer array.
GEN_DEVICE int64 far(int64 index) { return index; }
template <class I, int Size>
GEN_DEVICE array<int64, Size> far(const array<I, Size>& indices)
{
    array<int64, Size> result;
    GEN_UNROLL
    for (int i = 0; i < Size; i++) result[i] = indices[i];
    return result;
}

// ---- masks: which elements of a lane's share there are. A mask is an array of truth values, or computes them when asked.

/// Chunk j, of Vector neighbours, if first + j * Stride < limit.
template <int Stride, int Vector, class I, class L>
struct limited {
    I first;
    L limit;
    GEN_DEVICE bool operator[](int i) const { return first + i / Vector * Stride < limit; }
    template <int Size>
    GEN_DEVICE operator array<bool, Size>() const
    {
        return detail::computed<Size>(*this);
    }
};

template <int Stride, int Vector, class I, class L>
GEN_DEVICE limited<Stride, Vector, I, L> chunks_below(I first, L limit)
{
    return {first, limit};
}

/// A row's elements in a share whose chunks lie Stride apart, of which the first may begin before the row and the last end past
/// it: `first` is where the share begins in the row, `limit` the row's length. The first Within chunks end in the row.
template <int Stride, int Vector, int Within, class I, class L>
struct row_part {
    I first;
    L limit;
    GEN_DEVICE bool operator[](int i) const
    {
        const int chunk = i / Vector;
        return (chunk > 0 && chunk < Within) || within(first + chunk * Stride + i % Vector, limit);
    }
    template <int Size>
    GEN_DEVICE operator array<bool, Size>() const
    {
        return detail::computed<Size>(*this);
    }
};

template <int Stride, int Vector, int Within, class I, class L>
GEN_DEVICE row_part<Stride, Vector, Within, I, L> elements_within(I first, L limit)
{
    return {first, limit};
}

/// N consecutive elements from p[i] on, in accesses of up to 16 bytes. p + i is aligned to them.
template <int N, class T, class I>
GEN_DEVICE array<T, N> vec_load(const T* p, I i)
{
    array<T, N> result;
    detail::read_vector<N>(result.items, element_at(p, i));
    return result;
}

template <int N, class T, class I>
GEN_DEVICE void vec_store(T* p, I i, const array<T, N>& values)
{
    detail::write_vector<N>(element_at(p, i), values.items);
}

namespace detail {

template <class T, int N>
GEN_DEVICE array<T, N> copies(T value)
{
    array<T, N> result;
    GEN_UNROLL
    for (int i = 0; i < N; i++) result[i] = value;
    return result;
}

#if GEN_NVIDIA
// The words that so many bytes are made of, and those of N elements: masked one by one, elements of less than a register would take an
// instruction each.
GEN_DEVICE constexpr int word_bytes(int bytes) { return bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1; }

template <int N, class T>
using words_of = aligned_array<typename word<word_bytes(sizeof(T) * N)>::type, sizeof(T) * N / word_bytes(sizeof(T) * N)>;

template <int N, class T>
GEN_DEVICE words_of<N, T> copies_in_words(T fill)
{
    aligned_array<T, N> chunk;
    GEN_UNROLL
    for (int i = 0; i < N; i++) chunk.items[i] = fill;
    return __builtin_bit_cast(words_of<N, T>, chunk);
}

template <int N, class T>
GEN_DEVICE void from_words(T* to, const words_of<N, T>& words)
{
    const auto chunk = __builtin_bit_cast(aligned_array<T, N>, words);
    GEN_UNROLL
    for (int i = 0; i < N; i++) to[i] = chunk.items[i];
}
#endif

// N elements from p[place] on if `ok`, else `fill`. On a GPU without a branch, so that all loads of a share are under way before the
// first is waited for: in place of what is masked the first element of the memory is read, which is there if any is.
template <int N, class T, class I>
GEN_DEVICE void read_vector_or(T* to, bool ok, const T* p, I place, T fill)
{
#if GEN_AMD
    array<T, N> values;
    read_vector<N>(values.items, element_at(p, ok ? place : I{0}));
    GEN_UNROLL
    for (int i = 0; i < N; i++) to[i] = choose(ok, values[i], fill);
#elif GEN_NVIDIA
    words_of<N, T> read = *reinterpret_cast<const words_of<N, T>*>(element_at(p, ok ? place : I{0}));
    const words_of<N, T> other = copies_in_words<N>(fill);
    GEN_UNROLL
    for (int i = 0; i < sizeof(read) / sizeof(read.items[0]); i++) read.items[i] = ok ? read.items[i] : other.items[i];
    from_words<N>(to, read);
#else
    for (int i = 0; i < N; i++) to[i] = fill;
    if (ok) {
        keep_branch<N>();
        read_vector<N>(to, element_at(p, place));
    }
#endif
}

// The same behind a branch where that costs nothing.
template <int N, class T, class I>
GEN_DEVICE void read_vector_if(T* to, bool ok, const T* p, I place, T fill)
{
#if GEN_NVIDIA
    words_of<N, T> read = copies_in_words<N>(fill);
    if (ok) read = *reinterpret_cast<const words_of<N, T>*>(element_at(p, place));
    from_words<N>(to, read);
#else
    read_vector_or<N>(to, ok, p, place, fill);
#endif
}

/// Where chunks begin that lie Stride apart.
template <int64 Stride, class I>
struct strided {
    using index = I;
    I base;
    GEN_DEVICE I operator[](int chunk) const { return base + static_cast<I>(chunk * Stride); }
};

/// Where chunks of Vector begin, the places of whose elements are all the same.
template <int Vector, class I, int Size>
struct placed {
    using index = I;
    const array<I, Size>& at;
    GEN_DEVICE I operator[](int chunk) const { return at[chunk * Vector]; }
};

/// What a chunk has: what all of them have, or what it has itself.
template <class X>
GEN_DEVICE X of_chunk(X x, int)
{
    return x;
}
template <class X, int Count>
GEN_DEVICE X of_chunk(const array<X, Count>& x, int chunk)
{
    return x[chunk];
}
template <int Stride, int Vector, class I, class L>
GEN_DEVICE bool of_chunk(const limited<Stride, Vector, I, L>& x, int chunk)
{
    return x[chunk];
}

/// Size elements in chunks of Vector: chunk j begins at p[places[j]].
template <int Size, int Vector, class T, class P>
GEN_DEVICE array<T, Size> load_chunks(const T* p, P places)
{
    static_assert(Size % Vector == 0, "a load takes whole chunks");
    array<T, Size> result;
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++)
        read_vector<Vector>(result.items + chunk * Vector, element_at(p, places[chunk]));
    return result;
}

/// Does a mask hold for an element of a share? One truth value stands for all elements.
template <class M>
GEN_DEVICE bool holds(const M& mask, int i)
{
    return mask[i];
}
GEN_DEVICE bool holds(bool mask, int)
{
    return mask;
}
GEN_DEVICE bool holds(int mask, int)  // what `&` makes of two truth values
{
    return mask;
}

/// Is it known that a mask holds for no element?
template <class M>
GEN_DEVICE bool is_empty(const M&)
{
    return false;
}
template <int Stride, int Vector, class I, class L>
GEN_DEVICE bool is_empty(const limited<Stride, Vector, I, L>& mask)
{
    return mask.limit <= 0;
}
GEN_DEVICE bool is_empty(bool mask)
{
    return !mask;
}

/// The same where a chunk is read only if the mask holds for its elements, and is `fill` otherwise.
template <int Size, int Vector, class T, class P, class M>
GEN_DEVICE array<T, Size> load_chunks(const T* p, P places, const M& mask, T fill)
{
    static_assert(Size % Vector == 0, "a load takes whole chunks");
    array<T, Size> result;
#if GEN_AMD
    if (is_empty(mask)) return copies<T, Size>(fill);
#endif
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++)
        read_vector_if<Vector>(result.items + chunk * Vector, holds(mask, chunk * Vector), p, places[chunk], fill);
    return result;
}

/// Writes what load_chunks reads.
template <int Vector, class T, int Size, class P>
GEN_DEVICE void store_chunks(T* p, P places, const array<T, Size>& values)
{
    static_assert(Size % Vector == 0, "a store takes whole chunks");
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++)
        write_vector<Vector>(element_at(p, places[chunk]), values.items + chunk * Vector);
}

/// The same where a chunk is written only if the mask holds for its elements.
template <int Vector, class T, int Size, class P, class M>
GEN_DEVICE void store_chunks(T* p, P places, const array<T, Size>& values, const M& mask)
{
    static_assert(Size % Vector == 0, "a store takes whole chunks");
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++)
        if (holds(mask, chunk * Vector)) {
            keep_branch<Vector>();
            write_vector<Vector>(element_at(p, places[chunk]), values.items + chunk * Vector);
        }
}

}  // namespace detail

/// Size elements in chunks of Vector, Stride apart: element i is p[base + i / Vector * Stride + i % Vector].
template <int Size, int64 Stride, int Vector = 1, class T, class I>
GEN_DEVICE array<T, Size> strided_load(const T* p, I base)
{
    return detail::load_chunks<Size, Vector>(p, detail::strided<Stride, I>{base});
}

/// The same where a chunk is read only if the mask holds for its elements, and is `fill` otherwise.
template <int Size, int64 Stride, int Vector = 1, class T, class I, class M>
GEN_DEVICE array<T, Size> strided_load(const T* p, I base, const M& mask, detail::as_given<T> fill)
{
    return detail::load_chunks<Size, Vector>(p, detail::strided<Stride, I>{base}, mask, fill);
}

/// The same if `ok`, else all are `fill`.
template <int Size, int64 Stride, int Vector = 1, class T, class I>
GEN_DEVICE array<T, Size> strided_load(const T* p, I base, bool ok, detail::as_given<T> fill)
{
    return detail::load_chunks<Size, Vector>(p, detail::strided<Stride, I>{base}, ok, T(fill));
}

/// Writes what strided_load reads.
template <int Size, int64 Stride, int Vector = 1, class T, class I>
GEN_DEVICE void strided_store(T* p, I base, const array<T, Size>& values)
{
    detail::store_chunks<Vector>(p, detail::strided<Stride, I>{base}, values);
}

/// The same where a chunk is written only if the mask holds for its elements.
template <int Size, int64 Stride, int Vector = 1, class T, class I, class M>
GEN_DEVICE void strided_store(T* p, I base, const array<T, Size>& values, const M& mask)
{
    detail::store_chunks<Vector>(p, detail::strided<Stride, I>{base}, values, mask);
}

/// Writes one value to all places.
template <int Size, int64 Stride, int Vector = 1, class T, class I>
GEN_DEVICE void strided_store(T* p, I base, detail::as_given<T> value)
{
    strided_store<Size, Stride, Vector>(p, base, detail::copies<T, Size>(value));
}

template <int Size, int64 Stride, int Vector = 1, class T, class I, class M>
GEN_DEVICE void strided_store(T* p, I base, detail::as_given<T> value, const M& mask)
{
    strided_store<Size, Stride, Vector>(p, base, detail::copies<T, Size>(value), mask);
}

/// Writes rows of Depths neighbours, Pitch apart, of which a lane has the first ones of all rows, then the second ones, and so on.
template <int Size, int Depths, int Pitch, class T, class I>
GEN_DEVICE void turned_store(T* p, I base, const array<T, Size>& values)
{
    constexpr int rows = Size / Depths;
    GEN_UNROLL
    for (int row = 0; row < rows; row++) {
        array<T, Depths> turned;
        GEN_UNROLL
        for (int depth = 0; depth < Depths; depth++) turned[depth] = values[depth * rows + row];
        detail::write_vector<Depths>(element_at(p, base + row * Pitch), turned.items);
    }
}

namespace detail {

// How far from First the digits of a number lead.
template <int First, int Step0, int Step1, int Step2, int Step3>
GEN_DEVICE constexpr int by_digits(int i)
{
    return First + i % 2 * Step0 + i / 2 % 2 * Step1 + i / 4 % 2 * Step2 + i / 8 % 2 * Step3;
}

}  // namespace detail

/// Size elements in chunks of Vector, Stride apart, those of a chunk by the digits of their numbers: of blocks of Width, each of which
/// is read once.
template <int Size, int Stride, int Vector, int Width, int First, int Step0, int Step1, int Step2, int Step3, class T, class I>
GEN_DEVICE array<T, Size> picked_load(const T* p, I base)
{
    array<T, Size> result;
    GEN_UNROLL
    for (int chunk = 0; chunk < Size; chunk += Vector) {
        GEN_UNROLL
        for (int i = 0; i < Vector; i++) {
            const int block = detail::by_digits<First, Step0, Step1, Step2, Step3>(i) / Width;
            bool is_new = true;
            GEN_UNROLL
            for (int j = 0; j < i; j++) is_new = is_new && detail::by_digits<First, Step0, Step1, Step2, Step3>(j) / Width != block;
            if (!is_new) continue;
            const auto values = vec_load<Width>(p, base + chunk / Vector * Stride + block * Width);
            GEN_UNROLL
            for (int j = i; j < Vector; j++) {
                const int place = detail::by_digits<First, Step0, Step1, Step2, Step3>(j);
                if (place / Width == block) result[chunk + j] = values[place % Width];
            }
        }
    }
    return result;
}

/// The same if `ok`, else all are `fill`.
template <int Size, int Stride, int Vector, int Width, int First, int Step0, int Step1, int Step2, int Step3, class T, class I>
GEN_DEVICE array<T, Size> picked_load(const T* p, I base, bool ok, detail::as_given<T> fill)
{
    if (ok) {
        detail::keep_branch<Size>();
        return picked_load<Size, Stride, Vector, Width, First, Step0, Step1, Step2, Step3>(p, base);
    }
    return detail::copies<T, Size>(fill);
}

/// Elements in chunks of Vector, each in a place of its own: element i is p[at[i] + i % Vector], where `at` is the same for all
/// of a chunk.
template <int Vector, class T, class I, int Size>
GEN_DEVICE array<T, Size> placed_load(const T* p, const array<I, Size>& at)
{
    return detail::load_chunks<Size, Vector>(p, detail::placed<Vector, I, Size>{at});
}

/// The same where a chunk is read only if the mask holds for its elements, and is `fill` otherwise.
template <int Vector, class T, class I, int Size, class M>
GEN_DEVICE array<T, Size> placed_load(const T* p, const array<I, Size>& at, const M& mask, detail::as_given<T> fill)
{
    return detail::load_chunks<Size, Vector>(p, detail::placed<Vector, I, Size>{at}, mask, fill);
}

/// Size elements in chunks of Vector: chunk j begins at p[at[j]] and is read only if ok[j]; it is `fill` otherwise.
template <int Size, int Vector, class T, class P, class B>
GEN_DEVICE array<T, Size> chunks_load(const T* p, const P& at, const B& ok, detail::as_given<T> fill)
{
    array<T, Size> result;
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++) {
        T* const to = result.items + chunk * Vector;
        detail::read_vector_or<Vector>(to, detail::of_chunk(ok, chunk), p, detail::of_chunk(at, chunk), T(fill));
    }
    return result;
}

/// Writes what placed_load reads.
template <int Vector, class T, class I, int Size>
GEN_DEVICE void placed_store(T* p, const array<I, Size>& at, const array<T, Size>& values)
{
    detail::store_chunks<Vector>(p, detail::placed<Vector, I, Size>{at}, values);
}

template <int Vector, class T, class I, int Size>
GEN_DEVICE void placed_store(T* p, const array<I, Size>& at, detail::as_given<T> value)
{
    placed_store<Vector>(p, at, detail::copies<T, Size>(value));
}

/// The same where a chunk is written only if the mask holds for its elements.
template <int Vector, class T, class I, int Size, class M>
GEN_DEVICE void placed_store(T* p, const array<I, Size>& at, const array<T, Size>& values, const M& mask)
{
    detail::store_chunks<Vector>(p, detail::placed<Vector, I, Size>{at}, values, mask);
}

template <int Vector, class T, class I, int Size, class M>
GEN_DEVICE void placed_store(T* p, const array<I, Size>& at, detail::as_given<T> value, const M& mask)
{
    placed_store<Vector>(p, at, detail::copies<T, Size>(value), mask);
}

/// A row's elements as the mask says, in chunks of Vector, Stride apart, of which the first may begin up to Vector - 1 elements
/// before the row and the last end past it; what is not the row's is `fill`. Element 0's place is p + base; p has `end`
/// elements, Vector or more. A chunk is one access, unless it goes past the end. The first Within chunks end in the row.
template <int Size, int Stride, int Vector, int Within, class T, class I, class J, class L, class E>
GEN_DEVICE array<T, Size> row_load(
    const T* p, I base, row_part<Stride, Vector, Within, J, L> part, E end, detail::as_given<T> fill)
{
    const J first = part.first;
    const L limit = part.limit;
    static_assert(Size % Vector == 0 && Stride >= Vector, "a row is read in whole chunks, one behind the other");
    const bool some_past_end = end % Vector != 0;
    array<T, Size> result;
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++) {
        const int at = chunk * Stride;
        const bool whole = chunk < Within || (first + at < limit && (!some_past_end || base + at + Vector <= end));
        detail::read_vector_if<Vector>(result.items + chunk * Vector, whole, p, base + at, T(fill));
#if !GEN_AMD
        // What masks elements takes registers: only the lanes at the row's ends do.
        if ((chunk > 0 || first >= 0) && (chunk < Within || first + at + Vector <= limit)) continue;
#endif
        if (chunk > 0 && chunk < Within) continue;
        GEN_UNROLL
        for (int i = 0; i < Vector; i++) {
            T& value = result[chunk * Vector + i];
            value = detail::choose(within(first + at + i, limit), value, fill);
        }
    }
    if (some_past_end && Within < Size / Vector && base + (Size / Vector - 1) * Stride + Vector > end) {
        GEN_UNROLL
        for (int i = Within * Vector; i < Size; i++) {
            const int chunk = i / Vector * Stride, at = chunk + i % Vector;
            if (base + chunk + Vector > end && within(first + at, limit)) result[i] = *element_at(p, base + at);
        }
    }
    return result;
}

/// Writes one chunk of what row_load reads, and nothing outside the row.
template <int Stride, int Vector, int Within, int Size, class T, class I, class J, class L>
GEN_DEVICE void row_store(T* p, I base, const array<T, Size>& values, int chunk, J first, L limit)
{
    static_assert(Size % Vector == 0 && Stride >= Vector, "a row is written in whole chunks, one behind the other");
    const int at = chunk * Stride;
    if ((chunk > 0 || first >= 0) && (chunk < Within || first + at + Vector <= limit)) {
        detail::write_vector<Vector>(element_at(p, base + at), values.items + chunk * Vector);
    } else {
        GEN_UNROLL
        for (int i = 0; i < Vector; i++)
            if (within(first + at + i, limit)) *element_at(p, base + at + i) = values[chunk * Vector + i];
    }
}

/// Writes one value to a chunk.
template <int Stride, int Vector, int Within, class T, class I, class J, class L>
GEN_DEVICE void row_store(T* p, I base, detail::as_given<T> value, int chunk, J first, L limit)
{
    const int at = chunk * Stride;
    row_store<Stride, Vector, 0>(p, base + at, detail::copies<T, Vector>(value), 0, first + at, limit);
}

// ---- elements that registers do not hold

#if GEN_HOST
template <int Size, int Stride, int Vector, int Held, int Lanes, class T, class I>
GEN_DEVICE array<T, Size> strided_load(const T* p, I base, T*)
{
    return strided_load<Size, Stride, Vector>(p, base);
}

/// A row's elements, of which it was kept for all lanes which these are.
template <int Size, int Stride, int Vector, int Within, class T, class I, class E>
GEN_DEVICE array<T, Size> row_load(const T* p, I base, const array<bool, Size>& mask, E, detail::as_given<T> fill)
{
    array<T, Size> result;
    for (int i = 0; i < Size; i++) result[i] = mask[i] ? p[base + i / Vector * Stride + i % Vector] : T(fill);
    return result;
}

template <int Size, int Stride, int Vector, int Within, int Held, int Lanes, class T, class I, class M, class E>
GEN_DEVICE array<T, Size> row_load(const T* p, I base, const M& mask, E end, detail::as_given<T> fill, T*)
{
    return row_load<Size, Stride, Vector, Within>(p, base, mask, end, fill);
}

template <class T, int Size>
GEN_DEVICE const array<T, Size>& whole(const array<T, Size>& elements)
{
    return elements;
}
#else
/// A lane's elements, of which registers hold the first `Held`, and workgroup memory the others in chunks of 16 bytes.
template <class T, int Size, int Held, int Lanes>
struct kept
{
    static constexpr int chunk = 16 / sizeof(T);
    static_assert(Held % chunk == 0 && Size % chunk == 0, "registers and workgroup memory hold whole chunks");
    array<T, Held> held;
    T* rest;

    GEN_DEVICE T operator[](int i) const
    {
        if (i < Held) return held[i];
        const int at = (i - Held) / chunk * (chunk * Lanes) + (i - Held) % chunk;
        if constexpr (sizeof(T) < 4) {
            constexpr int per_word = 4 / sizeof(T);  // words, which the compiler joins to chunks
            const uint32 word = *reinterpret_cast<const uint32*>(rest + at / per_word * per_word);
            return detail::low_bits<T>(word >> (at % per_word * 8 * sizeof(T)));
        } else {
            return rest[at];
        }
    }
    /// Moves Count elements from element `i` on to workgroup memory.
    template <int Count>
    GEN_DEVICE void leave(int i, const array<T, Count>& elements) const
    {
        GEN_UNROLL
        for (int k = 0; k < Count; k += chunk) detail::write_vector<chunk>(rest + (i + k - Held) * Lanes, elements.items + k);
        asm volatile("" ::: "memory");  // or the compiler would hold them in registers all the same
    }
};

namespace detail {

// Elements that are on their way to workgroup memory at a time, at most: registers hold them meanwhile.
template <int Vector>
GEN_CONSTANT int under_way = Vector * 4;

}  // namespace detail

/// A lane's share as strided_load reads it; what registers do not hold goes to workgroup memory, in which each lane has its
/// own part.
template <int Size, int Stride, int Vector, int Held, int Lanes, class T, class I>
GEN_DEVICE kept<T, Size, Held, Lanes> strided_load(const T* p, I base, T* lds)
{
    constexpr int count = detail::under_way<Vector>, looped = (Size - Held) / count * count;
    kept<T, Size, Held, Lanes> result;
    result.rest = lds + local_id() * result.chunk;
    result.held = strided_load<Held, Stride, Vector>(p, base);
    GEN_UNROLL_BY(1)
    for (int i = Held; i < Held + looped; i += count)
        result.leave(i, strided_load<count, Stride, Vector>(p, base + i / Vector * Stride));
    if constexpr (Held + looped < Size)
        result.leave(Held + looped, strided_load<Size - Held - looped, Stride, Vector>(p, base + (Held + looped) / Vector * Stride));
    return result;
}

/// The same of a row's share as row_load reads it.
template <int Size, int Stride, int Vector, int Within, int Held, int Lanes, class T, class I, class J, class L, class E>
GEN_DEVICE kept<T, Size, Held, Lanes> row_load(
    const T* p, I base, row_part<Stride, Vector, Within, J, L> part, E end, detail::as_given<T> fill, T* lds)
{
    constexpr int count = detail::under_way<Vector>, inside = Within * Vector;
    constexpr int looped = inside > Held ? (inside - Held) / count * count : 0, last = Held + looped;
    kept<T, Size, Held, Lanes> result;
    result.rest = lds + local_id() * result.chunk;
    constexpr int within_held = (inside < Held ? inside : Held) / Vector, within_last = (inside > last ? inside - last : 0) / Vector;
    result.held = row_load<Held, Stride, Vector, within_held>(
        p, base, elements_within<Stride, Vector, within_held>(part.first, part.limit), end, fill);
    GEN_UNROLL_BY(1)
    for (int i = Held; i < last; i += count)
        result.leave(i, strided_load<count, Stride, Vector>(p, base + i / Vector * Stride));
    const int at = last / Vector * Stride;
    result.leave(last, row_load<Size - last, Stride, Vector, within_last>(
        p, base + at, elements_within<Stride, Vector, within_last>(part.first + at, part.limit), end, fill));
    return result;
}

/// All of a lane's elements in registers.
template <class T, int Size, int Held, int Lanes>
GEN_DEVICE array<T, Size> whole(const kept<T, Size, Held, Lanes>& elements)
{
    array<T, Size> result;
    GEN_UNROLL
    for (int i = 0; i < Size; i++) result[i] = elements[i];
    return result;
}
#endif

/// p[i], or `fill` without touching memory.
template <class T, class I>
GEN_DEVICE T load_if(const T* p, I i, bool ok, detail::as_given<T> fill)
{
    return ok ? *element_at(p, i) : fill;
}

/// An element if it exists, without a branch: the first one is read instead, so that a loop may read several at once, and reads
/// of one place are one.
template <class T, class I>
GEN_DEVICE T read_if(const T* p, I i, bool ok, detail::as_given<T> fill)
{
    const T value = p[i & -I(ok)];
    return detail::choose<T>(ok, value, fill);
}

/// p[i], or `fill` where i is negative.
template <class T, class I>
GEN_DEVICE T conditional_load(const T* p, I i, detail::as_given<T> fill)
{
    return load_if(p, i, i >= 0, fill);
}

// ---------------------------------------------------------------------------------------------------------
// Reductions, over a monoid: Op::acc, Op::identity(), Op::combine(a, b), associative and commutative
// ---------------------------------------------------------------------------------------------------------

namespace detail {

// A monoid of halves whose combination takes other types too, as one of those.
template <class Op, class T>
struct combining
{
    using acc = T;
    static GEN_DEVICE T combine(T a, T b) { return Op::combine(a, b); }
};

#if GEN_HOST
using folded_halves = float;
#else
using folded_halves = half2;
#endif

template <class Op, class = void>
inline constexpr bool combines_halves = false;
template <class Op>
inline constexpr bool combines_halves<Op, decltype(void(Op::combine(folded_halves(), folded_halves())))> =
    same<typename Op::acc, half>::value;

}  // namespace detail

/// Folds a lane's own values: eight chains of many, and what is left as a balanced tree. Chains take values in the order
/// in which they are loaded, and few registers. Halves are folded two at a time where their combination takes two.
template <class Op, int N>
GEN_DEVICE typename Op::acc lane_reduce(const array<typename Op::acc, N>& values)
{
    if constexpr (N == 0) {
        return Op::identity();
    } else if constexpr (N == 1) {
        return values[0];
    } else if constexpr (detail::combines_halves<Op>) {
        using Pairs = detail::combining<Op, detail::folded_halves>;
#if GEN_HOST
        array<float, N> floats;
        for (int i = 0; i < N; i++) floats[i] = float(values[i]);
        return half(lane_reduce<Pairs>(floats));
#else
        array<half2, (N + 1) / 2> pairs;
        GEN_UNROLL
        for (int i = 0; i < pairs.size(); i++) pairs[i] = detail::halves_at(values, 2 * i);
        const half2 last = lane_reduce<Pairs>(pairs);
        const half second = detail::second_of(last);
        return detail::first_of(Op::combine(last, detail::pair(second, second)));
#endif
    } else {
        constexpr int chains = N > 16 ? 8 : (N + 1) / 2;
        array<typename Op::acc, chains> folded;
        GEN_UNROLL
        for (int i = 0; i < chains; i++) folded[i] = values[i];
        GEN_UNROLL
        for (int i = chains; i < N; i++) folded[i % chains] = Op::combine(folded[i % chains], values[i]);
        return lane_reduce<Op>(folded);
    }
}

namespace detail {

template <class T>
struct greatest
{
    using acc = T;
    static GEN_DEVICE acc combine(acc a, acc b) { return max(a, b); }
};
template <class T>
struct total
{
    using acc = T;
    static GEN_DEVICE acc combine(acc a, acc b) { return a + b; }
};

}  // namespace detail

/// The greatest of a lane's own values.
template <class T, int N>
GEN_DEVICE T greatest_of(const array<T, N>& values)
{
    return lane_reduce<detail::greatest<T>>(values);
}

/// The sum of a lane's own values.
template <class T, int N>
GEN_DEVICE T sum_of(const array<T, N>& values)
{
    return lane_reduce<detail::total<T>>(values);
}

#if !GEN_HOST

namespace detail {

// Applies move(word, old word) to the 32-bit words of a value of any size; a smaller one is padded to a word.
template <class T, class Move>
GEN_DEVICE T move_words(T x, T old, Move move)
{
    constexpr int count = (sizeof(T) + 3) / 4;
    uint32 words[count] = {}, old_words[count] = {};
    copy_bytes(words, &x, sizeof(T));
    copy_bytes(old_words, &old, sizeof(T));
    GEN_UNROLL
    for (int i = 0; i < count; i++) words[i] = move(words[i], old_words[i]);
    copy_bytes(&x, words, sizeof(T));
    return x;
}

#if GEN_AMD

// Data-parallel primitives: a value of another lane, from within the row of 16, as part of an instruction.
namespace dpp {
constexpr int swap_pairs = 0xb1;         // quad_perm 1, 0, 3, 2
constexpr int swap_quad_halves = 0x4e;   // quad_perm 2, 3, 0, 1
constexpr int mirror_half_row = 0x141;
constexpr int mirror_row = 0x140;
constexpr int row_shift = 0x110;         // from the lane so many before
constexpr int row_broadcast_15 = 0x142;  // a row's last lane to the next row; gfx9 only
constexpr int row_broadcast_31 = 0x143;  // lane 31 to the upper half; gfx9 only
}  // namespace dpp

// x combined with another lane's value; a lane without a source combines the identity.
template <class Op, int Control>
GEN_DEVICE typename Op::acc dpp_step(typename Op::acc x)
{
    const auto move = [](uint32 word, uint32 old) {
        return static_cast<uint32>(__builtin_amdgcn_update_dpp(static_cast<int>(old), static_cast<int>(word),
                                                               Control, 0xf, 0xf, false));
    };
    return Op::combine(move_words(x, Op::identity(), move), x);
}

// Exchanges the halves of each 32 lanes.
template <class T>
GEN_DEVICE T swap_sixteen(T x)
{
    return move_words(x, x, [](uint32 word, uint32 old) {
#if defined(__GFX9__)
        (void)old;
        return static_cast<uint32>(__builtin_amdgcn_ds_swizzle(static_cast<int>(word), 0x401f));
#else
        return __builtin_amdgcn_permlanex16(old, word, 0x76543210u, 0xfedcba98u, false, false);
#endif
    });
}

template <class T>
GEN_DEVICE T read_lane(T x, int lane)
{
    return move_words(x, x, [lane](uint32 word, uint32) {
        return static_cast<uint32>(__builtin_amdgcn_readlane(static_cast<int>(word), lane));
    });
}

#if defined(__GFX9__)
// All 64 lanes: the result gathers in the last lane of each row, then from row to row, and is read from lane
// 63. No mask of rows or banks is needed: what other lanes hold meanwhile never reaches lane 63.
template <class Op>
GEN_DEVICE typename Op::acc reduce_wave(typename Op::acc x)
{
    x = dpp_step<Op, dpp::row_shift + 1>(x);
    x = dpp_step<Op, dpp::row_shift + 2>(x);
    x = dpp_step<Op, dpp::row_shift + 4>(x);
    x = dpp_step<Op, dpp::row_shift + 8>(x);
    x = dpp_step<Op, dpp::row_broadcast_15>(x);
    x = dpp_step<Op, dpp::row_broadcast_31>(x);
    return read_lane(x, 63);
}
#endif

template <class Op, int Lanes>
GEN_DEVICE typename Op::acc reduce(typename Op::acc x)
{
#if defined(__GFX9__)
    if constexpr (Lanes == 64) return reduce_wave<Op>(x);
#endif
    if constexpr (Lanes >= 2) x = dpp_step<Op, dpp::swap_pairs>(x);
    if constexpr (Lanes >= 4) x = dpp_step<Op, dpp::swap_quad_halves>(x);
    if constexpr (Lanes >= 8) x = dpp_step<Op, dpp::mirror_half_row>(x);
    if constexpr (Lanes >= 16) x = dpp_step<Op, dpp::mirror_row>(x);
    if constexpr (Lanes >= 32) x = Op::combine(x, swap_sixteen(x));
    if constexpr (Lanes >= 64) x = Op::combine(read_lane(x, 0), read_lane(x, 32));
    return x;
}

#else

template <class Op, int Lanes>
GEN_DEVICE typename Op::acc reduce(typename Op::acc x)
{
    GEN_UNROLL
    for (int distance = 1; distance < Lanes; distance *= 2)
        x = Op::combine(x, move_words(x, x, [distance](uint32 word, uint32) {
                            return __shfl_xor_sync(0xffffffffu, word, distance);
                        }));
    return x;
}

#endif
}  // namespace detail
#endif

/// Folds aligned groups of Lanes consecutive lanes of a wave; every lane gets its group's result. All lanes
/// of the wave take part.
template <class Op, int Lanes>
GEN_DEVICE typename Op::acc dpp_reduce(typename Op::acc x)
{
    static_assert(Lanes >= 1 && (Lanes & (Lanes - 1)) == 0, "a group of lanes is a power of two");
    static_assert(Lanes <= GEN_WAVE_SIZE, "a group of lanes lies within one wave");
    if constexpr (Lanes == 1) {
        return x;
    } else {
#if GEN_HOST
        static_assert(Lanes == 1, "on the host, lanes meet in operators of the role `sync` only");
#else
        return detail::reduce<Op, Lanes>(x);
#endif
    }
}

#if GEN_HOST && GEN_LANE_LOOPS
namespace host {

// What operations do for all lanes is compiled once, however often a kernel has them, not in line: that takes compilers
// longer than kernels gain by it.

// Every lane's result for all groups of Lanes lanes of the running wave, folded as a tree.
template <class Op, int Lanes>
struct wave_fold
{
    using acc = typename Op::acc;
    const lanes<acc>& values;

    __attribute__((noinline)) void run(acc* results) const
    {
        for (int first = first_lane(); first < last_lane(); first += Lanes) {
            acc partial[Lanes];
            for (int i = 0; i < Lanes; i++) partial[i] = values[first + i];
            for (int width = Lanes / 2; width > 0; width /= 2)
                for (int i = 0; i < width; i++) partial[i] = Op::combine(partial[i], partial[i + width]);
            for (int i = 0; i < Lanes; i++) results[first + i] = partial[0];
        }
    }
};

// The steps of an operation of the workgroup, on a value of each lane. The waves' loops before and after it have the
// first and the last step, which makes a missing fence show; Fence puts a barrier before the first.
template <class Steps, bool Fence>
struct operation_in_steps
{
    using value = typename Steps::value;
    const lanes<value>& values;
    Steps taken;

    __attribute__((noinline)) void step(int number, lanes<value>& results) const
    {
        GEN_LANES taken.step(number, results[gen_lane]);
    }
    GEN_DEVICE void enter(lanes<value>& results) const
    {
        GEN_LANES results[gen_lane] = values[gen_lane];
        if (!Fence && Steps::count > 0) step(0, results);
    }
    GEN_DEVICE void between(lanes<value>& results) const
    {
        for (int number = Fence ? 0 : 1; number < Steps::count - 1; number++) {
            GEN_WAVES step(number, results);
        }
    }
    GEN_DEVICE void leave(lanes<value>& results) const
    {
        if (Steps::count > 0) step(Steps::count - 1, results);
    }
};

template <class T, class Operation>
GEN_DEVICE void enter(lanes<T>& results, const Operation& operation)
{
    operation.enter(results);
}
template <class T, class Operation>
GEN_DEVICE void between(lanes<T>& results, const Operation& operation)
{
    operation.between(results);
}
template <class T, class Operation>
GEN_DEVICE void leave(lanes<T>& results, const Operation& operation)
{
    operation.leave(results);
}

}  // namespace host

template <class Op, int Lanes>
GEN_DEVICE host::wave_fold<Op, Lanes> dpp_reduce(const lanes<typename Op::acc>& x)
{
    static_assert(Lanes >= 1 && (Lanes & (Lanes - 1)) == 0, "a group of lanes is a power of two");
    static_assert(Lanes <= GEN_WAVE_SIZE, "a group of lanes lies within one wave");
    static_assert(GEN_BLOCK % Lanes == 0, "a cross-lane operation is wider than what is left of the last wave");
    return {x};
}

template <bool Fence, class Steps>
GEN_DEVICE host::operation_in_steps<Steps, Fence> in_steps(const Steps& steps,
                                                         const lanes<typename Steps::value>& x)
{
    return {x, steps};
}
#endif

/// How often a power of two can be halved.
GEN_DEVICE constexpr int halvings(int n) { return n > 1 ? 1 + halvings(n / 2) : 0; }

/// An operation of a workgroup, in steps with barriers between them: Steps::count times `step(number, x)`, what a lane does
/// with a value of its own, of type Steps::value, by way of workgroup memory. Fence: wait until the other lanes have
/// read what the memory held before. On the host, where lanes are loops, `x` may be a value of each lane.
template <bool Fence, class Steps>
GEN_DEVICE typename Steps::value in_steps(const Steps& steps, typename Steps::value x)
{
    GEN_UNROLL
    for (int number = 0; number < Steps::count; number++) {
        if (Fence || number > 0) lds_barrier();
        steps.step(number, x);
    }
    return x;
}

namespace detail {

template <class Op, int Waves>
struct waves_steps
{
    using value = typename Op::acc;
    static constexpr int count = Waves > 1 ? 2 : 0;
    value* lds;

    GEN_DEVICE void step(int number, value& x) const
    {
        if (number == 0) {
            if (lane_id() == 0) lds[wave_id()] = x;
        } else {
            x = result();
        }
    }
    GEN_DEVICE value result() const
    {
#if !GEN_HOST
        // Beyond eight waves, shuffles are fewer instructions than reading all results.
        if constexpr (Waves > 8 && Waves <= GEN_WAVE_SIZE && (Waves & (Waves - 1)) == 0)
            return dpp_reduce<Op, Waves>(lds[lane_id() % Waves]);
#endif
        value folded = lds[0];
        GEN_UNROLL
        for (int wave = 1; wave < Waves; wave++) folded = Op::combine(folded, lds[wave]);
        return folded;
    }
};

// Half of the lanes give their arrays to the other half, until four are left, whose arrays all lanes read.
template <class Op, int Lanes, int Across, int N>
struct parts_steps
{
    static_assert((Lanes & (Lanes - 1)) == 0, "lanes are halved");
    using value = array<typename Op::acc, N>;
    static constexpr int last = Lanes < 4 ? Lanes : 4, halved = 2 * halvings(Lanes / last), count = halved + 2;
    typename Op::acc* lds;

    GEN_DEVICE void step(int number, value& x) const
    {
        const int lane = local_id();
        const int given = (Lanes >> (number / 2 + 1)) * Across;
        if (number > halved) {
            read(x, lane % Across);
        } else if (number == halved) {
            if (lane < last * Across) write(x, last * Across, lane);
        } else if (number % 2 == 0) {
            if (lane >= given && lane < 2 * given) write(x, given, lane - given);
        } else {
            if (lane < given) combine(x, given, lane);
        }
    }
    // Elements of neighbouring lanes lie side by side, in distinct banks.
    GEN_DEVICE void write(const value& x, int width, int place) const
    {
        GEN_UNROLL
        for (int i = 0; i < N; i++) lds[i * width + place] = x[i];
    }
    GEN_DEVICE void combine(value& x, int width, int place) const
    {
        GEN_UNROLL
        for (int i = 0; i < N; i++) x[i] = Op::combine(x[i], lds[i * width + place]);
    }
    GEN_DEVICE void read(value& x, int column) const
    {
        GEN_UNROLL
        for (int i = 0; i < N; i++) {
            x[i] = lds[i * last * Across + column];
            GEN_UNROLL
            for (int part = 1; part < last; part++)
                x[i] = Op::combine(x[i], lds[(i * last + part) * Across + column]);
        }
    }
};

// The same for one value of each lane.
template <class Op, int Lanes, int Across>
struct part_steps
{
    using value = typename Op::acc;
    using of_arrays = parts_steps<Op, Lanes, Across, 1>;
    static constexpr int count = of_arrays::count;
    value* lds;

    GEN_DEVICE void step(int number, value& x) const
    {
        typename of_arrays::value one{{x}};
        of_arrays{lds}.step(number, one);
        x = one[0];
    }
};

#if GEN_NVIDIA
// Lanes that stand Across apart fold their arrays wave by wave; then each element of the waves' arrays is folded by a lane of its
// own.
template <class Op, int Lanes, int Across, bool Fence, int N>
GEN_DEVICE array<typename Op::acc, N> fold_parts(array<typename Op::acc, N> x, typename Op::acc* lds)
{
    constexpr int waves = Lanes * Across / GEN_WAVE_SIZE, places = N * Across;
    GEN_UNROLL
    for (int distance = Across; distance < GEN_WAVE_SIZE; distance *= 2) {
        GEN_UNROLL
        for (int i = 0; i < N; i++)
            x[i] = Op::combine(x[i], move_words(x[i], x[i], [distance](uint32 word, uint32) {
                                   return __shfl_xor_sync(0xffffffffu, word, distance);
                               }));
    }
    if constexpr (waves > 1) {
        if (Fence) lds_barrier();
        if (lane_id() < Across) {
            GEN_UNROLL
            for (int i = 0; i < N; i++) lds[wave_id() * places + i * Across + lane_id()] = x[i];
        }
        lds_barrier();
        for (int place = local_id(); place < places; place += Lanes * Across) {
            typename Op::acc folded = lds[place];
            GEN_UNROLL
            for (int wave = 1; wave < waves; wave++) folded = Op::combine(folded, lds[wave * places + place]);
            lds[place] = folded;
        }
        lds_barrier();
        GEN_UNROLL
        for (int i = 0; i < N; i++) x[i] = lds[i * Across + local_id() % Across];
    }
    return x;
}

template <class Op, int Lanes, int Across, bool Fence>
GEN_DEVICE typename Op::acc fold_parts(typename Op::acc x, typename Op::acc* lds)
{
    return fold_parts<Op, Lanes, Across, Fence>(array<typename Op::acc, 1>{{x}}, lds)[0];
}
#endif

// How the lanes' arrays or single values are folded: by what X is, or on the host what it holds one of for each lane.
template <class Op, int Lanes, int Across, class X>
struct parts_of
{
    using steps = part_steps<Op, Lanes, Across>;
};
template <class Op, int Lanes, int Across, class T, int N>
struct parts_of<Op, Lanes, Across, array<T, N>>
{
    using steps = parts_steps<Op, Lanes, Across, N>;
};
#if GEN_HOST && GEN_LANE_LOOPS
template <class Op, int Lanes, int Across, class T, int N>
struct parts_of<Op, Lanes, Across, lanes<array<T, N>>> : parts_of<Op, Lanes, Across, array<T, N>>
{
};
#endif

}  // namespace detail

/// Folds the results of all waves of a workgroup, through Waves elements of workgroup memory; every lane gets
/// the result. Fence: wait until the other waves have read what the memory held before.
template <class Op, int Waves, bool Fence = true, class X>
GEN_DEVICE auto reduce_waves(const X& x, typename Op::acc* lds)
{
    return in_steps<Fence>(detail::waves_steps<Op, Waves>{lds}, x);
}

/// Folds the arrays of Lanes lanes that stand Across from one another, element by element, or a value of each, through
/// workgroup memory for half of the lanes' arrays, but for those of four lanes at least; every lane gets its result. Where several
/// of these lanes are of one wave, it folds them first.
/// Fence: wait until the other lanes have read what the memory held before.
template <class Op, int Lanes, int Across, bool Fence = true, class X>
GEN_DEVICE auto reduce_parts(const X& x, typename Op::acc* lds)
{
#if GEN_NVIDIA
    if constexpr (Across < GEN_WAVE_SIZE) return detail::fold_parts<Op, Lanes, Across, Fence>(x, lds);
    else
#endif
        return in_steps<Fence>(typename detail::parts_of<Op, Lanes, Across, X>::steps{lds}, x);
}

// ---------------------------------------------------------------------------------------------------------
// Products of matrices
// ---------------------------------------------------------------------------------------------------------

#if GEN_HOST && GEN_LANE_LOOPS
namespace host {

// The products of the running wave's tiles, from what its lanes hold.
template <class X, int Down, int Across, int Deep, int A, int B>
struct tiles_product
{
    using T = typename X::operand;
    using result = array<typename X::sum, Down * Across * X::sums>;
    static constexpr int rows = Down * X::rows, columns = Across * X::columns, depth = Deep * X::depth;
    const lanes<array<T, A>>& a;
    const lanes<array<T, B>>& b;
    const lanes<result>& sums;

    __attribute__((noinline)) void run(result* results) const
    {
        static thread_local typename X::sum first[rows * depth], second[columns * depth], product[rows * columns];
        for (int begin = first_lane(); begin < last_lane(); begin += X::lanes) {
            for (int lane = 0; lane < X::lanes; lane++) {
                for (int k = 0; k < Deep; k++) {
                    for (int tile = 0; tile < Down; tile++)
                        for (int i = 0; i < X::left; i++)
                            first[(tile * X::rows + X::left_row(lane, i)) * depth + k * X::depth + X::left_depth(lane, i)] =
                                convert<typename X::sum>(a[begin + lane][X::left_at(tile, k, Deep, i)]);
                    for (int tile = 0; tile < Across; tile++)
                        for (int i = 0; i < X::right; i++)
                            second[(tile * X::columns + X::right_row(lane, i)) * depth + k * X::depth + X::right_depth(lane, i)] =
                                convert<typename X::sum>(b[begin + lane][X::right_at(tile, k, Deep, i)]);
                }
            }
            for (int row = 0; row < rows; row++)
                for (int column = 0; column < columns; column++) {
                    typename X::sum total = 0;
                    for (int k = 0; k < depth; k++) total += first[row * depth + k] * second[column * depth + k];
                    product[row * columns + column] = total;
                }
            for (int lane = 0; lane < X::lanes; lane++)
                for (int down = 0; down < Down; down++)
                    for (int across = 0; across < Across; across++)
                        for (int i = 0; i < X::sums; i++) {
                            const int place = (down * Across + across) * X::sums + i;
                            const int row = down * X::rows + X::sum_row(lane, i);
                            const int column = across * X::columns + X::sum_column(lane, i);
                            results[begin + lane][place] = sums[begin + lane][place] + product[row * columns + column];
                        }
        }
    }
};
}  // namespace host

template <class X, int Down, int Across, int Deep, int A, int B>
GEN_DEVICE host::tiles_product<X, Down, Across, Deep, A, B> wave_product(
    const lanes<array<typename X::operand, A>>& a, const lanes<array<typename X::operand, B>>& b,
    const lanes<array<typename X::sum, Down * Across * X::sums>>& sums)
{
    return {a, b, sums};
}
#else
#if GEN_HOST
/// Values that lie one after another in workgroup memory, as they are.
template <class T>
struct in_memory
{
    const T* items;

    GEN_DEVICE const T& operator[](int i) const { return items[i]; }
};

template <class T, class I>
GEN_DEVICE in_memory<T> view(const T* p, I base)
{
    return {p + base};
}

/// Adds the products of a lane's tiles to the sums that it holds: those of a tile stay in registers along the depth.
template <class X, int Down, int Across, int Deep, class A, class B>
GEN_DEVICE array<typename X::sum, Down * Across * X::sums>& wave_product(
    const A& a, const B& b, array<typename X::sum, Down * Across * X::sums>& sums)
{
    for (int across = 0; across < Across; across++)
        for (int down = 0; down < Down; down++) {
            typename X::sum* held = sums.items + (down * Across + across) * X::sums;
            typename X::sum part[X::sums];
            GEN_UNROLL_WHOLE
            for (int i = 0; i < X::sums; i++) part[i] = held[i];
            GEN_ROLLED
            for (int k = 0; k < Deep; k++) {
                typename X::operand first[X::left], second[X::right];
                GEN_UNROLL_WHOLE
                for (int i = 0; i < X::left; i++) first[i] = a[X::left_at(down, k, Deep, i)];
                GEN_UNROLL_WHOLE
                for (int i = 0; i < X::right; i++) second[i] = b[X::right_at(across, k, Deep, i)];
                X::multiply(first, second, part);
            }
            GEN_UNROLL_WHOLE
            for (int i = 0; i < X::sums; i++) held[i] = part[i];
        }
    return sums;
}
#else
/// Adds the products of a wave's tiles to the sums that its lanes hold.
template <class X, int Down, int Across, int Deep, int A, int B>
GEN_DEVICE array<typename X::sum, Down * Across * X::sums> wave_product(
    const array<typename X::operand, A>& a, const array<typename X::operand, B>& b,
    array<typename X::sum, Down * Across * X::sums> sums)
{
    GEN_UNROLL
    for (int k = 0; k < Deep; k++) {
        GEN_UNROLL
        for (int down = 0; down < Down; down++) {
            alignas(16) typename X::operand first[X::left];
            GEN_UNROLL
            for (int i = 0; i < X::left; i++) first[i] = a[X::left_at(down, k, Deep, i)];
            GEN_UNROLL
            for (int across = 0; across < Across; across++) {
                alignas(16) typename X::operand second[X::right];
                GEN_UNROLL
                for (int i = 0; i < X::right; i++) second[i] = b[X::right_at(across, k, Deep, i)];
                alignas(16) typename X::sum part[X::sums];
                GEN_UNROLL
                for (int i = 0; i < X::sums; i++) part[i] = sums[(down * Across + across) * X::sums + i];
                X::multiply(first, second, part);
                GEN_UNROLL
                for (int i = 0; i < X::sums; i++) sums[(down * Across + across) * X::sums + i] = part[i];
            }
        }
    }
    return sums;
}
#endif
#endif

#if GEN_HOST && GEN_LANE_LOOPS
namespace host {

// What each lane of the running wave gets when teams of lanes exchange what they hold.
template <int Team, int Before, int Unit, class T, int N>
struct turned_teams
{
    const lanes<array<T, N>>& values;

    __attribute__((noinline)) void run(array<T, N>* results) const
    {
        for (int lane = first_lane(); lane < last_lane(); lane++)
            for (int i = 0; i < N; i++) {
                const int unit = i % Unit, from = i / Unit % Team, before = i / (Unit * Team) % Before, rest = i / (Unit * Team * Before);
                results[lane][i] = values[lane / Team * Team + from][((rest * Team + lane % Team) * Before + before) * Unit + unit];
            }
    }
};

}  // namespace host

template <int Team, int Before, int Unit, class T, int N>
GEN_DEVICE host::turned_teams<Team, Before, Unit, T, N> team_turn(const lanes<array<T, N>>& values)
{
    return {values};
}
#elif !GEN_HOST
namespace detail {

// The word of the lane whose number differs in a bit.
template <class Word>
GEN_DEVICE Word word_across(Word word, int bit)
{
#if GEN_NVIDIA
    return __shfl_xor_sync(0xffffffffu, word, bit);
#else
    return static_cast<Word>(__builtin_amdgcn_ds_bpermute((lane_id() ^ bit) * 4, word));
#endif
}

}  // namespace detail

/// The lanes of each team exchange what they hold, numbered by rest, Team, Before and Unit: lane t gets the parts t of all, units
/// side by side. Bit by bit, a lane gives half of its parts for half of another lane's.
template <int Team, int Before, int Unit, class T, int N>
GEN_DEVICE array<T, N> team_turn(const array<T, N>& values)
{
    constexpr int words = Unit * static_cast<int>(sizeof(T)) / 4;
    static_assert(words * 4 == Unit * static_cast<int>(sizeof(T)), "units are whole words");
    const int number = lane_id() % Team;
    array<T, N> result;
    GEN_UNROLL
    for (int group = 0; group < N / (Team * Unit); group++) {
        const int first = group / Before * (Team * Before * Unit) + group % Before * Unit;
        uint32 parts[Team][words];
        GEN_UNROLL
        for (int part = 0; part < Team; part++) detail::copy_bytes(parts[part], values.items + first + part * Before * Unit, words * 4);
        GEN_UNROLL
        for (int bit = 1; bit < Team; bit *= 2) {
            const bool upper = number & bit;
            GEN_UNROLL
            for (int part = 0; part < Team; part++) {
                if (part & bit) continue;
                GEN_UNROLL
                for (int word = 0; word < words; word++) {
                    uint32 &low = parts[part][word], &high = parts[part | bit][word];
                    const uint32 got = detail::word_across(upper ? low : high, bit);
                    low = upper ? got : low;
                    high = upper ? high : got;
                }
            }
        }
        GEN_UNROLL
        for (int part = 0; part < Team; part++) detail::copy_bytes(result.items + (group * Team + part) * Unit, parts[part], words * 4);
    }
    return result;
}
#endif

/// Of rows of so many elements, the eight chunks are exchanged by the number of the row.
template <int Row, class I>
GEN_DEVICE I exchange(I i)
{
    return i ^ ((i / Row % 8) * (Row / 8));
}

/// All lanes meet; what they wrote is there for instructions that read workgroup memory by themselves, too.
template <bool Together = true>
GEN_DEVICE void lds_barrier_for_instructions()
{
#if GEN_NVIDIA && __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    lds_barrier<Together>();
}

/// Writes N neighbours, of which element `last` of a lane's share is the last, at place `end`; if they exist.
template <int N, class T, class I, int Size>
GEN_DEVICE void write_chunk(T* p, I end, const array<T, Size>& values, int last, bool ok = true)
{
    if (ok) detail::write_vector<N>(p + (end - (N - 1)), values.items + (last - (N - 1)));
}

#if GEN_NVIDIA
namespace detail {

// Where something stands in workgroup memory, as instructions take it.
GEN_DEVICE unsigned lds_place(const void* p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

}  // namespace detail
#endif

#if GEN_NVIDIA || (GEN_HOST && GEN_LANE_LOOPS)
namespace detail {

// Waits until no more than so many groups of the lane's copies are under way.
template <int Pending>
GEN_DEVICE void await_copies()
{
#if GEN_NVIDIA
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#else
    if (host::shuffled) host::copies_of_lanes[local_id()].bring_all_but(Pending);
#endif
}

// Copies 16 bytes to workgroup memory while lanes go on, or puts zeros there. The unit's cache keeps what is Kept.
template <bool Kept, class T>
GEN_DEVICE void copy_16(T* to, const T* from, bool ok)
{
#if GEN_NVIDIA
    const unsigned place = lds_place(to);
    if (Kept)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(ok ? 16 : 0) : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(ok ? 16 : 0) : "memory");
#else
    const host::late_copy copy{reinterpret_cast<unsigned char*>(to), ok ? reinterpret_cast<const unsigned char*>(from) : nullptr, 16, 0};
    if (host::shuffled)
        host::copies_of_lanes[local_id()].add(copy);
    else
        copy.make();
#endif
}

}  // namespace detail

/// All lanes meet, each when no more than so many groups of its copies are under way.
template <int Pending>
GEN_DEVICE void copies_barrier()
{
    detail::await_copies<Pending>();
#if !GEN_HOST
    lds_barrier();
#endif
}

/// The same; what was copied is there for instructions that read workgroup memory by themselves, too.
template <int Pending>
GEN_DEVICE void copies_barrier_for_instructions()
{
    detail::await_copies<Pending>();
#if !GEN_HOST
    lds_barrier_for_instructions();
#endif
}

/// The copies since the last one make up a group.
GEN_DEVICE void end_copies()
{
#if GEN_NVIDIA
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    host::copies_of_lanes[local_id()].groups++;
#endif
}

#if GEN_NVIDIA && __CUDA_ARCH__ >= 900
/// How lanes take turns with the stages of a workgroup's memory: for each stage a barrier tells that all lanes have filled it, and
/// one that all waves have left it. A lane counts what it has filled, taken and left.
template <int Stages>
struct turns
{
    unsigned place;
    int filled = 0, taken = 0, left = 0;

    GEN_DEVICE turns(uint64* barriers, int lanes) : place(static_cast<unsigned>(__cvta_generic_to_shared(barriers)))
    {
        if (local_id() == 0)
            for (int i = 0; i < 2 * Stages; i++)
                asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(place + 8 * i), "r"(i < Stages ? lanes : lanes / 32) : "memory");
        lds_barrier();
    }
    GEN_DEVICE void await(unsigned barrier, int phase)
    {
        asm volatile("{\n.reg .pred done;\nWAIT: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(barrier), "r"(phase) : "memory");
    }
    GEN_DEVICE void await_left() { await(place + 8 * (Stages + filled % Stages), filled / Stages % 2 ^ 1); }
    template <bool Copied>
    GEN_DEVICE void fills()
    {
        if constexpr (Copied)
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(place + 8 * (filled % Stages)) : "memory");
        else {
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(place + 8 * (filled % Stages)) : "memory");
        }
        filled++;
    }
    GEN_DEVICE void await_filled()
    {
        await(place + 8 * (taken % Stages), taken / Stages % 2);
        taken++;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    template <class T>
    GEN_DEVICE T leave_after(T made)
    {
        if (local_id() % 32 == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(place + 8 * (Stages + left % Stages)) : "memory");
        left++;
        return made;
    }
};
#define GEN_TURNS(lds, stages, lanes)          \
    __shared__ gen::uint64 lds##_barriers[2 * stages]; \
    gen::turns<stages> lds##_turns(lds##_barriers, lanes)
#define GEN_AWAIT_LEFT(lds) lds##_turns.await_left()
#define GEN_AWAIT_FILLED(lds, ahead) lds##_turns.await_filled()
#define GEN_FILLS(lds, copied) lds##_turns.fills<copied>()
#define GEN_LEAVE_AFTER(lds, ...) lds##_turns.leave_after(__VA_ARGS__)
#elif GEN_HOST
// Where lanes run one after the other, all have left a stage when the first one fills it.
#define GEN_TURNS(lds, stages, lanes)
#define GEN_AWAIT_LEFT(lds)
#define GEN_AWAIT_FILLED(lds, ahead) gen::detail::await_copies<ahead>()
#define GEN_FILLS(lds, copied) gen::end_copies()
#define GEN_LEAVE_AFTER(lds, ...) __VA_ARGS__
#endif

/// Copies chunks of 16 bytes from memory to workgroup memory while lanes go on: chunk n if `first` + n * Step is below `limit`,
/// else zeros stand there. The unit's cache keeps what is Kept.
template <int Size, int ToStride, int FromStride, int Vector, int Step, bool Kept, class T, class I, class J, class K, class L>
GEN_DEVICE void copy_async(T* lds, I to, const T* p, J from, K first, L limit)
{
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++) {
        const bool ok = first + chunk * Step < limit;
        detail::copy_16<Kept>(lds + to + chunk * ToStride, p + (ok ? from + chunk * FromStride : 0), ok);
    }
}

/// The same where chunk n is what begins at p[at[n]] if ok[n], else zeros stand there.
template <int Size, int ToStride, int Vector, bool Kept, class T, class I, class P, class B>
GEN_DEVICE void copy_chunks_async(T* lds, I to, const T* p, const P& at, const B& ok)
{
    GEN_UNROLL
    for (int chunk = 0; chunk < Size / Vector; chunk++) {
        const bool exists = detail::of_chunk(ok, chunk);
        detail::copy_16<Kept>(lds + to + chunk * ToStride, p + (exists ? detail::of_chunk(at, chunk) : 0), exists);
    }
}
#endif

#if (GEN_NVIDIA && __CUDA_ARCH__ >= 900) || (GEN_HOST && GEN_LANE_LOOPS)
// ---- boxes of tensors that the GPU's engine for bulk copies brings to workgroup memory

/// How the engine goes over a picture: how many planes, rows and places it counts, how far apart they are, and where they begin.
template <int Planes, int Rows, int Places, int PlaneStep, int RowStep, int PlaceStep, int FirstPlane, int FirstRow, int FirstPlace>
struct walk
{
    static GEN_DEVICE int picture(int place) { return place / (Planes * Rows * Places); }
    static GEN_DEVICE int plane(int place) { return place / (Rows * Places) % Planes * PlaneStep + FirstPlane; }
    static GEN_DEVICE int row(int place) { return place / Places % Rows * RowStep + FirstRow; }
    static GEN_DEVICE int across(int place) { return place % Places * PlaceStep + FirstPlace; }
};

#if GEN_HOST
/// A tensor's memory and how it lies: batches of rows, whose neighbours are neighbours in memory.
template <class T, int Batches, int Rows, int Columns, long long Offset, long long BatchStride, long long RowStride>
struct tensor_map
{
    const T* first;

    tensor_map(const T* p) : first(p + Offset) {}

    /// How many of so many neighbours exist.
    static int existing(int batch, int row, int column, int count)
    {
        if (batch >= Batches || row >= Rows || column >= Columns) return 0;
        return Columns - column < count ? Columns - column : count;
    }
    const T* at(int batch, int row, int column) const { return first + batch * BatchStride + row * RowStride + column; }
};

/// A picture's memory and how it lies, and how it is walked.
template <class T, int Pictures, int Planes, int Rows, int Places, int Channels, long long Offset, long long PictureStride, long long PlaneStride,
    long long RowStride, long long PlaceStride, class Walk>
struct picture_map
{
    using walk = Walk;
    const T* first;

    picture_map(const T* p) : first(p + Offset) {}

    /// How many of so many neighbours exist.
    static int existing(int picture, int plane, int row, int place, int channel, int count)
    {
        const bool within = picture < Pictures && 0 <= plane && plane < Planes && 0 <= row && row < Rows && 0 <= place && place < Places;
        return !within || channel >= Channels ? 0 : Channels - channel < count ? Channels - channel : count;
    }
    const T* at(int picture, int plane, int row, int place, int channel) const
    {
        return first + picture * PictureStride + plane * PlaneStride + row * RowStride + place * PlaceStride + channel;
    }
};
#else
/// What the launcher says of a tensor's memory, in the GPU's own form.
struct alignas(64) tensor_map
{
    uint64 words[16];
};

/// The same of a picture, and how it is walked.
template <class Walk>
struct picture_map : tensor_map
{
    using walk = Walk;
};

namespace detail {

// A counter in workgroup memory: it goes on to the next phase when so many have arrived, and all bytes that they announced.
template <int Count>
GEN_DEVICE void begin_counter(int64* counter)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(lds_place(counter)), "n"(Count) : "memory");
}

GEN_DEVICE void arrive(int64* counter)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(lds_place(counter)) : "memory");
}

// Announces so many bytes for a step, and gives the counter of their arrival.
template <int Stages, int Bytes>
GEN_DEVICE unsigned announced(int64* arrivals, int step)
{
    const unsigned arrival = lds_place(arrivals + step % Stages);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrival), "n"(Bytes) : "memory");
    return arrival;
}

// Waits for the end of a phase: an even or an odd one.
GEN_DEVICE void await_counter(int64* counter, int phase)
{
    unsigned done = 0;
    while (!done)
        asm volatile(
            "{\n"
            ".reg .pred done;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.u32 %0, 1, 0, done;\n"
            "}"
            : "=r"(done)
            : "r"(lds_place(counter)), "r"(phase)
            : "memory");
}

}  // namespace detail
#endif

/// Has a counter of arrivals for each stage of tiles begin; a stage is complete when so many copies are. If there are readers, a
/// second counter for each stage is complete when all have read it.
template <int Stages, int Copies, int Readers>
GEN_DEVICE void begin_arrivals(int64* arrivals)
{
#if GEN_NVIDIA
    if (local_id() == 0) {
        GEN_UNROLL
        for (int stage = 0; stage < Stages; stage++) {
            detail::begin_counter<Copies>(arrivals + stage);
            if constexpr (Readers > 0) detail::begin_counter<Readers>(arrivals + Stages + stage);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    lds_barrier();
#endif
}

#if GEN_NVIDIA
/// Is this the lane that a wave elects to act for it? The compiler then knows that one lane alone is there, and what it asks the
/// engine for needs no loop over lanes.
GEN_DEVICE bool is_elected()
{
    unsigned elected;
    asm volatile(
        "{\n"
        ".reg .pred elected;\n"
        "elect.sync _|elected, 0xffffffff;\n"
        "selp.u32 %0, 1, 0, elected;\n"
        "}"
        : "=r"(elected));
    return elected != 0;
}
#endif

#if GEN_HOST
namespace detail {

// Each lane copies some chunks of boxes, of which `of(row, column, count, from)` says how many neighbours exist, and where.
template <int Rows, int Columns, int Count, class T, class F>
void copy_chunks_of_boxes(T* lds, int step, F of)
{
    constexpr int chunk = 16 / static_cast<int>(sizeof(T)), chunks = Count * Rows * Columns / chunk;
    for (int i = local_id(); i < chunks; i += GEN_BLOCK) {
        const int place = i * chunk;
        const T* first = nullptr;
        const int bytes = of(place / Columns % Rows, place / (Rows * Columns) * Columns + place % Columns, chunk, &first) * static_cast<int>(sizeof(T));
        unsigned char* at = reinterpret_cast<unsigned char*>(lds + exchange<Columns>(place));
        const host::late_copy parts[] = {{at, reinterpret_cast<const unsigned char*>(first), bytes, 0}, {at + bytes, nullptr, 16 - bytes, 0}};
        for (const host::late_copy& part : parts)
            if (host::shuffled)
                host::copies_of_lanes[local_id()].add_for(step, part);
            else
                part.make();
    }
}

}  // namespace detail
#endif

/// Lane number By, or the one that is there alone (-1), copies boxes of rows to workgroup memory while all lanes go on, side by side along the
/// rows, one after the other there; the chunks of a row are exchanged. Zeros stand for what lies outside of the tensor.
template <int Stages, int Rows, int Columns, int Count, int By, class T, class M>
GEN_DEVICE void copy_boxes(T* lds, int to, const M& map, int64* arrivals, int step, int batch, int row, int column)
{
#if GEN_NVIDIA
    if (By < 0 || local_id() == By) {
        const unsigned arrival = detail::announced<Stages, Count * Rows * Columns * static_cast<int>(sizeof(T))>(arrivals, step);
        GEN_UNROLL
        for (int box = 0; box < Count; box++)
            asm volatile(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, { %3, %4, %5 }], [%2];" ::"r"(
                    detail::lds_place(lds + to + box * Rows * Columns)),
                "l"(&map), "r"(arrival), "r"(column + box * Columns), "r"(row), "r"(batch)
                : "memory");
    }
#else
    detail::copy_chunks_of_boxes<Rows, Columns, Count>(lds + to, step, [&](int r, int c, int count, const T** from) {
        const int existing = map.existing(batch, row + r, column + c, count);
        *from = existing ? map.at(batch, row + r, column + c) : nullptr;
        return existing;
    });
#endif
}

/// The same for windows over a picture: a row for each place from number `place` on, and from there to the window's element.
template <int Stages, int Rows, int Columns, int Count, int By, class T, class M>
GEN_DEVICE void copy_windows(T* lds, int to, const M& map, int64* arrivals, int step, int place, int plane, int row, int across, int channel)
{
    using walk = typename M::walk;
#if GEN_NVIDIA
    if (By < 0 || local_id() == By) {
        const unsigned arrival = detail::announced<Stages, Count * Rows * Columns * static_cast<int>(sizeof(T))>(arrivals, step);
        GEN_UNROLL
        for (int box = 0; box < Count; box++)
            asm volatile(
                "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, { %3, %4, %5, %6, %7 }], [%2], { %8, %9, %10 };" ::"r"(
                    detail::lds_place(lds + to + box * Rows * Columns)),
                "l"(&map), "r"(arrival), "r"(channel + box * Columns), "r"(walk::across(place)), "r"(walk::row(place)), "r"(walk::plane(place)),
                "r"(walk::picture(place)), "h"(static_cast<unsigned short>(across)), "h"(static_cast<unsigned short>(row)),
                "h"(static_cast<unsigned short>(plane))
                : "memory");
    }
#else
    detail::copy_chunks_of_boxes<Rows, Columns, Count>(lds + to, step, [&](int r, int c, int count, const T** from) {
        const int p = walk::picture(place + r), d = walk::plane(place + r) + plane, h = walk::row(place + r) + row, w = walk::across(place + r) + across;
        const int existing = map.existing(p, d, h, w, channel + c, count);
        *from = existing ? map.at(p, d, h, w, channel + c) : nullptr;
        return existing;
    });
#endif
}

/// A lane waits until the boxes of a step have arrived.
template <int Stages>
GEN_DEVICE void receive_boxes([[maybe_unused]] int64* arrivals, int step)
{
#if GEN_NVIDIA
    detail::await_counter(arrivals + step % Stages, step / Stages % 2);
#else
    if (host::shuffled) host::copies_of_lanes[local_id()].bring_before(step + 1);
#endif
}

/// All lanes meet when the boxes of a step have arrived.
template <int Stages>
GEN_DEVICE void await_boxes(int64* arrivals, int step)
{
    receive_boxes<Stages>(arrivals, step);
#if GEN_NVIDIA
    lds_barrier();
#endif
}

/// A lane waits until all have read what the stage of a step held before.
template <int Stages>
GEN_DEVICE void await_readers([[maybe_unused]] int64* arrivals, [[maybe_unused]] int step)
{
#if GEN_NVIDIA
    if (step >= Stages) detail::await_counter(arrivals + Stages + step % Stages, (step / Stages - 1) % 2);
#endif
}
#endif

#if GEN_NVIDIA && __CUDA_ARCH__ >= 900
namespace detail {

// Describes a matrix in workgroup memory to a warpgroup's instruction: rows of 128 bytes, their chunks of 16 exchanged. Eight
// rows follow one another after 1024 bytes; where elements lie across the depth, blocks of a row's after `apart` elements.
template <class T>
GEN_DEVICE uint64 matrix_description(const T* p, int apart)
{
    const uint64 place = lds_place(p);
    const uint64 blocks = static_cast<uint64>(apart * static_cast<int>(sizeof(T))) >> 4;
    return (place & 0x3ffff) >> 4 | blocks << 16 | static_cast<uint64>(1024 >> 4) << 32 | static_cast<uint64>(1) << 62;
}

// Where step `k` of an operand's row `r` of so many begins: the rows of a block follow one another, then those of the next one.
template <class X, int Rows>
GEN_DEVICE constexpr int begin_in_rows(int r, int k, int row)
{
    return k * X::depth / row * (Rows * row) + r * row + k * X::depth % row;
}

}  // namespace detail

/// Adds the products of tiles in workgroup memory to the sums that the lanes of a group hold.
template <class X, int Down, int Across, int Deep, int FirstAcross, int SecondAcross, int InFlight, class T, class I, class J>
GEN_DEVICE array<typename X::sum, Down * Across * X::sums> group_product(
    const T* lds, I a, J b, array<typename X::sum, Down * Across * X::sums> sums)
{
    constexpr int depth = Deep * X::depth, row = 128 / sizeof(T);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    GEN_UNROLL
    for (int k = 0; k < Deep; k++) {
        GEN_UNROLL
        for (int down = 0; down < Down; down++) {
            const T* first = lds + a + (FirstAcross ? down * X::rows * depth + k * X::depth * row : detail::begin_in_rows<X, Down * X::rows>(down * X::rows, k, row));
            GEN_UNROLL
            for (int across = 0; across < Across; across++) {
                const T* second = lds + b
                    + (SecondAcross ? across * X::columns * depth + k * X::depth * row : detail::begin_in_rows<X, Across * X::columns>(across * X::columns, k, row));
                X::template multiply<FirstAcross, SecondAcross>(
                    detail::matrix_description(first, FirstAcross ? depth * row : row / 8),
                    detail::matrix_description(second, SecondAcross ? depth * row : row / 8),
                    sums.items + (down * Across + across) * X::sums);
            }
        }
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(InFlight) : "memory");
    return sums;
}

/// The sums, once all products are done.
template <class S, int N>
GEN_DEVICE array<S, N> await_products(array<S, N> sums)
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    GEN_UNROLL
    for (int i = 0; i < N; i++) {
        if constexpr (detail::is_integer<S>)
            asm volatile("" : "+r"(sums[i])::"memory");
        else
            asm volatile("" : "+f"(sums[i])::"memory");
    }
    return sums;
}
#elif GEN_HOST
// Where the element of row `r` of so many and depth `k` stands, as for the instructions above.
template <int Across, int Row>
GEN_DEVICE int matrix_place(int r, int k, int rows, int depth)
{
    return exchange<Row>(Across ? r / Row * (depth * Row) + k * Row + r % Row : k / Row * (rows * Row) + r * Row + k % Row);
}

template <class X, int Down, int Across, int Deep, int FirstAcross, int SecondAcross, int InFlight, class T, class I, class J>
GEN_DEVICE array<typename X::sum, Down * Across * X::sums> group_product(
    const T* lds, I a, J b, array<typename X::sum, Down * Across * X::sums> sums)
{
    constexpr int depth = Deep * X::depth;
    const int lane = local_id() % X::lanes;
    for (int down = 0; down < Down; down++)
        for (int across = 0; across < Across; across++)
            for (int i = 0; i < X::sums; i++) {
                const int row = down * X::rows + X::sum_row(lane, i), column = across * X::columns + X::sum_column(lane, i);
                typename X::sum total = 0;
                for (int k = 0; k < depth; k++)
                    total += convert<typename X::sum>(lds[a + matrix_place<FirstAcross, 128 / sizeof(T)>(row, k, Down * X::rows, depth)])
                        * convert<typename X::sum>(lds[b + matrix_place<SecondAcross, 128 / sizeof(T)>(column, k, Across * X::columns, depth)]);
                sums[(down * Across + across) * X::sums + i] += total;
            }
    return sums;
}

template <class S, int N>
GEN_DEVICE array<S, N> await_products(const array<S, N>& sums)
{
    return sums;
}
#endif

#if (GEN_NVIDIA && __CUDA_ARCH__ >= 900) || (GEN_HOST && GEN_LANE_LOOPS)
/// The same, for tiles that other waves copy: a group that has multiplied what a stage holds says so.
template <class X, int Down, int Across, int Deep, int FirstAcross, int SecondAcross, int InFlight, int Stages, class T, class I, class J>
GEN_DEVICE array<typename X::sum, Down * Across * X::sums> group_product_freeing(
    const T* lds, I a, J b, [[maybe_unused]] int64* arrivals, [[maybe_unused]] int step, array<typename X::sum, Down * Across * X::sums> sums)
{
    sums = group_product<X, Down, Across, Deep, FirstAcross, SecondAcross, InFlight>(lds, a, b, sums);
#if GEN_NVIDIA
    if (step >= InFlight && local_id() % X::lanes == 0) detail::arrive(arrivals + Stages + (step - InFlight) % Stages);
#endif
    return sums;
}
#endif

#if (GEN_NVIDIA && __CUDA_ARCH__ >= 900) || GEN_HOST
/// The products of tiles in workgroup memory that the lanes of a group hold.
template <class X, int Down, int Across, int Deep, int FirstAcross, int SecondAcross, class T, class I, class J>
GEN_DEVICE array<typename X::sum, Down * Across * X::sums> group_products(const T* lds, I a, J b)
{
    array<typename X::sum, Down * Across * X::sums> none;
    GEN_UNROLL
    for (int i = 0; i < Down * Across * X::sums; i++) none[i] = 0;
    return await_products(group_product<X, Down, Across, Deep, FirstAcross, SecondAcross, 0>(lds, a, b, none));
}
#endif

// ---------------------------------------------------------------------------------------------------------
// Products with powers of scores
// ---------------------------------------------------------------------------------------------------------
//
// A lane's state: its sums; of each row of scores that it has part of the largest one and the sum of its own powers; whether
// there was a step.

namespace detail {

template <class X, int Down, int Across>
struct weighted
{
    static constexpr int sums = Down * Across * X::sums, rows = Down * X::sum_rows, size = sums + 2 * rows + 1;
    using state = array<float, size>;

    static GEN_DEVICE constexpr int row_of_sum(int i) { return i / (Across * X::sums) * X::sum_rows + X::row_of_sum(i % X::sums); }
};

// What powers are measured by: the largest score, or 0 where that is infinitely small.
GEN_DEVICE float level_of(float most)
{
    return most == -infinity<float>() ? 0.0f : most;
}

}  // namespace detail

#if GEN_NVIDIA && __CUDA_ARCH__ >= 900
namespace detail {

// Folds a value of each of the lanes whose numbers differ in some bits.
template <int Bits, class F>
GEN_DEVICE float fold_beside(float x, F combine)
{
    GEN_UNROLL
    for (int bit = 1; bit < 32; bit *= 2)
        if (Bits & bit) x = combine(x, __shfl_xor_sync(0xffffffffu, x, bit));
    return x;
}

// Of each row, the largest score that a lane holds.
template <class Y, int Rows, int N>
GEN_DEVICE array<float, Rows> most_of_rows(const array<float, N>& scores)
{
    constexpr int each = N / (Rows / Y::sum_rows);
    array<float, Rows> most;
    GEN_UNROLL
    for (int r = 0; r < Rows; r++) most[r] = -infinity<float>();
    GEN_UNROLL
    for (int i = 0; i < N; i++) {
        const int r = i / each * Y::sum_rows + Y::row_of_sum(i % Y::sums);
        most[r] = fmaxf(most[r], scores[i]);
    }
    return most;
}

}  // namespace detail

/// Goes on by a step: scales a lane's sums by what its rows' largest scores have grown, and adds the products of powers of the
/// scores, which lie as Y leaves its result, with values in workgroup memory. Scores count `scale` times, which is above 0.
template <class Y, class X, int Down, int Across, int Deep, int SecondAcross, int N, class T, class I>
GEN_DEVICE typename detail::weighted<X, Down, Across>::state softmax_product(
    const array<float, N>& scores, const T* lds, I b, float scale_of_scores, typename detail::weighted<X, Down, Across>::state state)
{
    const float factor = scale_of_scores * 1.44269504f;  // for powers of 2
    using W = detail::weighted<X, Down, Across>;
    constexpr int each = N / Down, depth = Deep * X::depth, row = 128 / sizeof(T);
    float *most = state.items + W::sums, *total = most + W::rows;
    const bool begun = state[W::size - 1] != 0;
    array<float, W::rows> next = detail::most_of_rows<Y, W::rows>(scores), scale;
    GEN_UNROLL
    for (int r = 0; r < W::rows; r++) {
        next[r] = detail::fold_beside<Y::beside>(next[r], [](float x, float y) { return fmaxf(x, y); });
        const float before = begun ? most[r] : -infinity<float>();
        most[r] = fmaxf(next[r], before);
        next[r] = detail::level_of(most[r]);
        scale[r] = exp2_near((before - next[r]) * factor);
        total[r] *= scale[r];
        next[r] *= factor;
    }
    alignas(16) typename X::operand powers[N];
    GEN_UNROLL
    for (int i = 0; i < N; i++) {
        const int r = i / each * Y::sum_rows + Y::row_of_sum(i % Y::sums);
        const float power = exp2_near(__fmaf_rn(scores[i], factor, -next[r]));
        total[r] += power;
        powers[i] = convert<typename X::operand>(power);
    }
    GEN_UNROLL
    for (int i = 0; i < W::sums; i++) state[i] *= scale[W::row_of_sum(i)];
    state[W::size - 1] = 1;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    GEN_UNROLL
    for (int k = 0; k < Deep; k++) {
        GEN_UNROLL
        for (int down = 0; down < Down; down++) {
            const uint32* first = reinterpret_cast<const uint32*>(powers + down * each + k * X::left);
            GEN_UNROLL
            for (int across = 0; across < Across; across++) {
                const T* second = lds + b
                    + (SecondAcross ? across * X::columns * depth + k * X::depth * row : detail::begin_in_rows<X, Across * X::columns>(across * X::columns, k, row));
                X::template multiply<SecondAcross>(
                    first, detail::matrix_description(second, SecondAcross ? depth * row : row / 8), state.items + (down * Across + across) * X::sums);
            }
        }
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    return await_products(state);
}

/// The sums over the sums of powers, which the lanes of a row add up.
template <class X, int Down, int Across>
GEN_DEVICE array<float, detail::weighted<X, Down, Across>::sums> softmax_finish(typename detail::weighted<X, Down, Across>::state state)
{
    using W = detail::weighted<X, Down, Across>;
    array<float, W::rows> over;
    GEN_UNROLL
    for (int r = 0; r < W::rows; r++)
        over[r] = 1.0f / detail::fold_beside<X::beside>(state[W::sums + W::rows + r], [](float x, float y) { return x + y; });
    array<float, W::sums> means;
    GEN_UNROLL
    for (int i = 0; i < W::sums; i++) means[i] = state[i] * over[W::row_of_sum(i)];
    return means;
}
#elif GEN_HOST && GEN_LANE_LOOPS
namespace host {

template <class T>
const T& of_lane(const lanes<T>& values, int lane)
{
    return values[lane];
}
template <class T>
T of_lane(T value, int)
{
    return value;
}

// The next state of the lanes of the running wave, of whose scores the rows lie within the wave.
template <class Y, class X, int Down, int Across, int Deep, int SecondAcross, int N, class T, class I>
struct softmax_step
{
    using W = gen::detail::weighted<X, Down, Across>;
    using result = typename W::state;
    static constexpr int rows = Down * X::rows, depth = Deep * X::depth, each = N / Down, tiles = depth / Y::columns;
    const lanes<array<float, N>>& scores;
    const T* lds;
    const I& b;
    float scale_of_scores;
    const lanes<result>& states;

    static int row_of(int lane, int i) { return i / each * X::rows + Y::sum_row(lane % Y::lanes, i % Y::sums); }
    static int column_of(int lane, int i) { return i % each / Y::sums * Y::columns + Y::sum_column(lane % Y::lanes, i % Y::sums); }
    static_assert(tiles * Y::sums == each, "scores are what lanes hold of whole tiles");

    __attribute__((noinline)) void run(result* results) const
    {
        static thread_local float table[rows * depth], most[rows];
        for (int r = 0; r < rows; r++) most[r] = -infinity<float>();
        for (int lane = first_lane(); lane < last_lane(); lane++)
            for (int i = 0; i < N; i++) {
                const int r = row_of(lane, i);
                const float score = scores[lane][i] * scale_of_scores;
                table[r * depth + column_of(lane, i)] = score;
                if (score > most[r]) most[r] = score;
            }
        for (int lane = first_lane(); lane < last_lane(); lane++) results[lane] = next(lane, table, most);
    }

    result next(int lane, const float* table, const float* most) const
    {
        result state = states[lane];
        const auto begin = of_lane(b, lane);
        float levels[W::rows], scale[W::rows];
        for (int i = 0; i < N; i++) {
            const int slot = i / each * Y::sum_rows + Y::row_of_sum(i % Y::sums), r = row_of(lane, i);
            if (i % each >= Y::sums || (i > 0 && first_of(slot) != i)) continue;
            float& so_far = state[W::sums + slot];
            const float before = state[W::size - 1] != 0 ? so_far : -infinity<float>();
            so_far = before > most[r] ? before : most[r];
            levels[slot] = gen::detail::level_of(so_far);
            scale[slot] = exp(before - levels[slot]);
            state[W::sums + W::rows + slot] *= scale[slot];
        }
        for (int i = 0; i < N; i++) {
            const int slot = i / each * Y::sum_rows + Y::row_of_sum(i % Y::sums);
            state[W::sums + W::rows + slot] += exp(scores[lane][i] * scale_of_scores - levels[slot]);
        }
        for (int i = 0; i < W::sums; i++) {
            const int slot = W::row_of_sum(i), down = i / (Across * X::sums), across = i / X::sums % Across;
            const int r = down * X::rows + X::sum_row(lane % X::lanes, i % X::sums);
            const int column = across * X::columns + X::sum_column(lane % X::lanes, i % X::sums);
            float total = 0;
            for (int k = 0; k < depth; k++)
                total += convert<float>(convert<T>(static_cast<float>(exp(table[r * depth + k] - levels[slot]))))
                    * convert<float>(lds[begin + matrix_place<SecondAcross, 128 / sizeof(T)>(column, k, Across * X::columns, depth)]);
            state[i] = state[i] * scale[slot] + total;
        }
        state[W::size - 1] = 1;
        return state;
    }

    // The first element of a lane's share that is of a row.
    static int first_of(int slot)
    {
        int i = 0;
        while (i / each * Y::sum_rows + Y::row_of_sum(i % Y::sums) != slot) i++;
        return i;
    }
};

template <class X, int Down, int Across>
struct softmax_end
{
    using W = gen::detail::weighted<X, Down, Across>;
    using result = array<float, W::sums>;
    const lanes<typename W::state>& states;

    __attribute__((noinline)) void run(result* results) const
    {
        static thread_local float totals[Down * X::rows];
        for (float& total : totals) total = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int lane = first_lane(); lane < last_lane(); lane++) {
                bool added[W::rows] = {};
                for (int i = 0; i < W::sums; i++) {
                    const int slot = W::row_of_sum(i), r = i / (Across * X::sums) * X::rows + X::sum_row(lane % X::lanes, i % X::sums);
                    if (pass == 1)
                        results[lane][i] = states[lane][i] / totals[r];
                    else if (!added[slot])
                        totals[r] += states[lane][W::sums + W::rows + slot], added[slot] = true;
                }
            }
    }
};
}  // namespace host

template <class Y, class X, int Down, int Across, int Deep, int SecondAcross, int N, class T, class I>
GEN_DEVICE host::softmax_step<Y, X, Down, Across, Deep, SecondAcross, N, T, I> softmax_product(
    const lanes<array<float, N>>& scores, const T* lds, const I& b, float scale_of_scores,
    const lanes<typename detail::weighted<X, Down, Across>::state>& states)
{
    return {scores, lds, b, scale_of_scores, states};
}

template <class X, int Down, int Across>
GEN_DEVICE host::softmax_end<X, Down, Across> softmax_finish(const lanes<typename detail::weighted<X, Down, Across>::state>& states)
{
    return {states};
}
#endif

}  // namespace gen

#endif  // GEN_HPP
