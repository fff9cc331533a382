// A GPU's lanes on the CPU, for HIP source as it is: what clang has for AMD GPUs by name, as functions and macros. A
// lane is a context of its own. All lanes of a workgroup run in turn to where they meet, however few of them take part.

#include <ucontext.h>

#include <memory>

namespace fake {

struct lane
{
    ucontext_t context;
    unsigned words[2] = {0, 0};  // what it gives to others: they may still read the one while it writes the other
    bool ended = false;
};

constexpr int block = FAKE_BLOCK, stack_bytes = 1 << 17;
static thread_local int group, running;
static thread_local lane lanes[block];
static thread_local ucontext_t scheduler;
static thread_local unsigned meetings;
static thread_local void (*kernel)(void* const*);
static thread_local void* const* arguments;

// All lanes come to here before any goes on.
static void meet()
{
    const int self = running;
    swapcontext(&lanes[self].context, &scheduler);
}

static void lane_main()
{
    kernel(arguments);
    lanes[running].ended = true;
    meet();
}

// The word that another lane of the wave gives; `from` is its number in the wave, out of it for none.
static unsigned exchange(unsigned word, int from, unsigned otherwise)
{
    const unsigned turn = meetings % 2;
    const int first = running / GEN_WAVE_SIZE * GEN_WAVE_SIZE;
    lanes[running].words[turn] = word;
    meet();
    return from < 0 || from >= GEN_WAVE_SIZE ? otherwise : lanes[first + from].words[turn];
}

// The lane whose value one gets by data-parallel primitives; -1 for none.
static int dpp_source(int control)
{
    const int self = running % GEN_WAVE_SIZE, row = self & -16, place = self % 16;
    if (control < 0x100) return (self & -4) + (control >> 2 * (self % 4) & 3);
    if (control > 0x110 && control < 0x120) return place < control - 0x110 ? -1 : self - (control - 0x110);
    if (control == 0x140) return row + 15 - place;
    if (control == 0x141) return (self & -8) + 7 - self % 8;
    if (control == 0x142) return row ? row - 1 : -1;
    if (control == 0x143) return self < 32 ? -1 : 31;
    __builtin_trap();
}

static bool run_group()
{
    static thread_local std::unique_ptr<char[]> stacks(new char[block * stack_bytes]);
    for (int i = 0; i < block; i++) {
        getcontext(&lanes[i].context);
        lanes[i].context.uc_stack.ss_sp = stacks.get() + i * stack_bytes;
        lanes[i].context.uc_stack.ss_size = stack_bytes;
        makecontext(&lanes[i].context, lane_main, 0);
        lanes[i].ended = false;
    }
    for (int ended = 0; ended == 0; meetings++) {
        for (running = 0; running < block; running++) swapcontext(&scheduler, &lanes[running].context);
        for (const lane& each : lanes) ended += each.ended;
        if (ended && ended < block) return false;
    }
    return true;
}

// 0, or 1 if lanes that should have met did not.
static int run(void (*given)(void* const*), void* const* values, unsigned groups)
{
    kernel = given;
    arguments = values;
    for (group = 0; group < static_cast<int>(groups); group++)
        if (!run_group()) return 1;
    return 0;
}

}  // namespace fake

// What g++ lacks of clang's vectors.
#ifndef __clang__
namespace fake {
typedef _Float16 halves __attribute__((vector_size(4)));
static halves fma(halves a, halves b, halves c)
{
    const float x = __builtin_fmaf(a[0], b[0], c[0]), y = __builtin_fmaf(a[1], b[1], c[1]);
    return halves{static_cast<_Float16>(x), static_cast<_Float16>(y)};
}
}  // namespace fake

#define ext_vector_type(count) vector_size(2 * count)
#define __builtin_elementwise_fma(a, b, c) fake::fma(a, b, c)
#endif

#define __HIP__ 1
#define __builtin_amdgcn_workgroup_id_x() fake::group
#define __builtin_amdgcn_workitem_id_x() fake::running
#define __builtin_amdgcn_workgroup_size_x() fake::block
#define __builtin_amdgcn_fence(...)
#define __builtin_amdgcn_s_barrier() fake::meet()
#define __builtin_amdgcn_readfirstlane(word) (word)  // of what is the same in all lanes
#define __builtin_amdgcn_readlane(word, lane) fake::exchange(word, lane, 0)
#define __builtin_amdgcn_update_dpp(old, word, control, rows, banks, bound) \
    fake::exchange(word, fake::dpp_source(control), old)
#define __builtin_amdgcn_ds_swizzle(word, pattern) fake::exchange(word, fake::running % GEN_WAVE_SIZE ^ 16, 0)
#define __builtin_amdgcn_permlanex16(old, word, low, high, fetch, bound) \
    fake::exchange(word, fake::running % GEN_WAVE_SIZE ^ 16, old)
#define __builtin_amdgcn_rsqf(x) (1 / __builtin_sqrtf(x))
#define __builtin_amdgcn_exp2f(x) __builtin_exp2f(x)
#define __builtin_amdgcn_rcpf(x) (1 / (x))
