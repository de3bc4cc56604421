/* The compiler: CUDA (NVRTC), OpenCL C 1.2 or host C. The only file that names one.
 *
 * Everything below this file sees capabilities (HAS_PTX), address spaces, lane ids, a barrier (one that also orders global
 * memory within the block, and one that need hold only for 32 lanes in a row), atomics, a few bit operations, a load that the
 * first-level cache need not keep and one of what nobody writes while the kernel runs. All kernels are variable time:
 * searches see public points, never a secret, and the key of private retrieval belongs to whoever runs the card.
 *
 * DEV is inlined, or with INLINE_HELPERS 0 kept out of line: compilers that take minutes over one large function
 * (AMD's) then build in seconds, and the code runs some three times slower. INLINE is inlined all the same: PoCL 3.1
 * knows neither a lane's number nor atomics of shared memory in functions out of line. */

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

typedef unsigned int u32;
typedef unsigned long long u64;
typedef uint4 quad;

#define U64C(x) x##ULL
#define INLINE static __device__ __forceinline__
#if INLINE_HELPERS
#define DEV static __device__ __forceinline__
#else
#define DEV static __device__ __noinline__
#endif
#define COLD static __device__ __noinline__
#define KERNEL extern "C" __global__
#define LAUNCH_BOUNDS __launch_bounds__(BLOCK, BLOCKS)
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY(type, name, n) __shared__ type name[n]
#define RESTRICT __restrict__
#define ASM asm
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define LOCAL_ID ((u32)threadIdx.x)
#define GROUP_ID ((u32)blockIdx.x)
#define BARRIER() __syncthreads()
#define BARRIER_GLOBAL() __syncthreads()
#define TEAM_BARRIER() __syncwarp()
#define ATOMIC_ADD(p, x) atomicAdd(p, x)
#define ATOMIC_ADD_LOCAL(p, x) atomicAdd(p, x)
#define ATOMIC_XOR(p, x) atomicXor(p, x)
#define ATOMIC_MAX(p, x) atomicMax(p, x)
#define UNROLL_BY_2 _Pragma("unroll 2")
#define UNROLL_BY_4 _Pragma("unroll 4")
#define SWAP_BYTES(x) __byte_perm(x, 0, 0x0123)
#define LEADING_ZEROS(x) ((u32)__clz((int)(x)))
#define COUNT_ONES(x) ((u32)__popc(x))
#define CONSTANT_DATA(type, name, n) static __constant__ const type name[n]
#define LOAD_FAR(p) __ldcg(p)
#define LOAD_STEADY(p) __ldg(p)

/* Zero, but the compiler cannot know: a symbol the host could set. */
__constant__ u32 platform_zero;
#define OPAQUE_ZERO platform_zero
#define OPAQUE_ONE (platform_zero + 1)

#elif defined(__OPENCL_VERSION__)

typedef uint u32;
typedef ulong u64;
typedef uint4 quad;

#define U64C(x) x##UL
#define INLINE static inline __attribute__((always_inline))
#if INLINE_HELPERS
#define DEV static inline
#else
#define DEV __attribute__((noinline)) static
#endif
#define COLD __attribute__((noinline)) static
#define KERNEL __kernel
#define LAUNCH_BOUNDS
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARRAY(type, name, n) __local type name[n]
#define RESTRICT restrict
#define ASM __asm__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define LOCAL_ID ((u32)get_local_id(0))
#define GROUP_ID ((u32)get_group_id(0))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define BARRIER_GLOBAL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define TEAM_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define ATOMIC_ADD(p, x) atomic_add((volatile __global u32 *)(p), x)
#define ATOMIC_ADD_LOCAL(p, x) atomic_add((volatile __local u32 *)(p), x)
#define ATOMIC_XOR(p, x) atomic_xor((volatile __global u32 *)(p), x)
#define ATOMIC_MAX(p, x) atomic_max((volatile __global u32 *)(p), x)
#define UNROLL_BY_2 _Pragma("unroll 2")
#define UNROLL_BY_4 _Pragma("unroll 4")
#define SWAP_BYTES(x) as_uint(as_uchar4(x).wzyx)
#define LEADING_ZEROS(x) clz((u32)(x))
#define COUNT_ONES(x) popcount((u32)(x))
#define CONSTANT_DATA(type, name, n) __constant type name[n]
#define LOAD_FAR(p) (*(p))
#define LOAD_STEADY(p) (*(p))
/* Nothing is launched with an offset, but the compiler cannot know. */
#define OPAQUE_ONE ((u32)get_global_offset(0) + 1)

#else /* Host C11: a block is BLOCK threads; the program that includes this text defines the hooks. */

#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef struct {
    u32 x, y, z, w;
} quad;

extern _Thread_local u32 host_local_id, host_group_id;
extern void host_barrier(void);

#define U64C(x) x##ULL
#define INLINE DEV
#define DEV static __attribute__((unused, noinline)) /* sanitizers make inlined code slow to build */
#define COLD DEV
#define KERNEL
#define LAUNCH_BOUNDS
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY(type, name, n) static type name[n]
#define RESTRICT
#define ASM __asm__
#define UNROLL
#define ROLLED
#define LOCAL_ID host_local_id
#define GROUP_ID host_group_id
#define BARRIER() host_barrier()
#define BARRIER_GLOBAL() host_barrier()
#define TEAM_BARRIER() host_barrier()
#define ATOMIC_ADD(p, x) __atomic_fetch_add(p, x, __ATOMIC_RELAXED)
#define ATOMIC_ADD_LOCAL(p, x) __atomic_fetch_add(p, x, __ATOMIC_RELAXED)
#define ATOMIC_XOR(p, x) __atomic_fetch_xor(p, x, __ATOMIC_RELAXED)
#define LOAD_FAR(p) (*(p))
#define LOAD_STEADY(p) (*(p))
#define OPAQUE_ONE 1u
#define ATOMIC_MAX(p, x) host_atomic_max(p, x)
#define UNROLL_BY_2
#define UNROLL_BY_4
#define SWAP_BYTES(x) __builtin_bswap32(x)
#define LEADING_ZEROS(x) ((x) ? (u32)__builtin_clz(x) : 32u)
#define COUNT_ONES(x) ((u32)__builtin_popcount(x))
#define CONSTANT_DATA(type, name, n) static const type name[n]

DEV u32 host_atomic_max(u32 *p, u32 x) {
    u32 old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < x && !__atomic_compare_exchange_n(p, &old, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}

#endif

/* The table of i*G: constant memory (TABLE_CONSTANT 1) or a read-only global buffer.
 * TABLE_PARAM stands in an entry point's signature, with its comma; a constant symbol of CUDA needs
 * none, and the host sets `search_table` instead. */
#if TABLE_CONSTANT && (defined(__CUDACC__) || defined(__CUDACC_RTC__))
#define TABLE
__constant__ quad search_table[(GROUP + 1) * TABLE_QUADS];
#define TABLE_PARAM
#elif TABLE_CONSTANT && defined(__OPENCL_VERSION__)
#define TABLE __constant
#define TABLE_PARAM TABLE const quad *search_table,
#else
#define TABLE GLOBAL
#define TABLE_PARAM TABLE const quad *RESTRICT search_table,
#endif
