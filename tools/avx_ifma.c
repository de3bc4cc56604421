/* Shows a processor to a program as one with AVX-IFMA and without AVX-512, to run there what was compiled for such a processor.
 *
 *     cc -O2 -shared -fPIC -o /tmp/avx_ifma.so tools/avx_ifma.c
 *     LD_PRELOAD=/tmp/avx_ifma.so warpsmith devices
 *
 * Needs Linux on an x86-64 processor with AVX2 that lets CPUID fault (Intel's do). CPUID is answered without the features of
 * AVX-512 and with that of AVX-IFMA; products of 52 bits in VEX encoding, which the processor takes for no instruction,
 * are computed here, some microsecond each. Everything else runs as it is: so speeds mean nothing, results everything.
 */

#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
/* Where the signal frame has the upper halves of ymm registers, and the word that says whether it has them. */
#define YMM_HIGH 576
#define XSTATE_BV 512
#define XSTATE_YMM 4

#define MASK52 ((1ULL << 52) - 1)

static void fault_on_cpuid(int on)
{
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, !on);
}

/* Lets the fault happen again, and end the program as it would without this. */
static void give_up(int number)
{
    signal(number, SIG_DFL);
}

static void on_segv(int number, siginfo_t *info, void *context)
{
    greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)reg[REG_RIP];
    uint32_t leaf = reg[REG_RAX], sub = reg[REG_RCX], a, b, c, d;

    /* Not a fault of memory, which has an address. */
    if (info->si_code != SI_KERNEL || code[0] != 0x0f || code[1] != 0xa2) {
        give_up(number);
        return;
    }
    fault_on_cpuid(0);
    __cpuid_count(leaf, sub, a, b, c, d);
    fault_on_cpuid(1);
    if (leaf == 7 && sub == 0) {
        a = a > 1 ? a : 1;
        b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
        c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
        d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 23);
    }
    if (leaf == 7 && sub == 1) {
        a = (a & ~(1u << 5)) | 1u << 23;
        d &= ~(1u << 19);
    }
    reg[REG_RAX] = a;
    reg[REG_RBX] = b;
    reg[REG_RCX] = c;
    reg[REG_RDX] = d;
    reg[REG_RIP] += 2;
}

/* General registers as instructions number them. */
static const int GENERAL[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void read_ymm(const uint8_t *frame, int i, uint64_t to[4])
{
    memcpy(to, ((const struct _libc_fpstate *)frame)->_xmm + i, 16);
    memcpy(to + 2, frame + YMM_HIGH + 16 * i, 16);
}

static void write_ymm(uint8_t *frame, int i, const uint64_t from[4])
{
    memcpy(((struct _libc_fpstate *)frame)->_xmm + i, from, 16);
    memcpy(frame + YMM_HIGH + 16 * i, from + 2, 16);
}

/* Where the operand in memory lies that begins with this byte; moves on to what follows it. */
static uint64_t address(const greg_t *reg, const uint8_t **code, int index_high, int base_high)
{
    int mod = **code >> 6, rm = *(*code)++ & 7, wide = mod == 2;
    uint64_t at = 0;
    int32_t far = 0;

    if (rm == 4) {
        int sib = *(*code)++, index = (sib >> 3 & 7) | index_high << 3, base = sib & 7;
        if (index != 4)
            at += (uint64_t)reg[GENERAL[index]] << (sib >> 6);
        if (base == 5 && mod == 0)
            wide = 1;
        else
            at += reg[GENERAL[base | base_high << 3]];
    } else if (rm == 5 && mod == 0) {
        /* No instruction of this kind has anything behind the distance. */
        memcpy(&far, *code, 4);
        *code += 4;
        return (uint64_t)*code + far;
    } else {
        at += reg[GENERAL[rm | base_high << 3]];
    }
    if (wide) {
        memcpy(&far, *code, 4);
        *code += 4;
    } else if (mod == 1) {
        far = (int8_t) * (*code)++;
    }
    return at + far;
}

static void on_ill(int number, siginfo_t *info, void *context)
{
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    uint8_t *frame = (uint8_t *)machine->fpregs;
    uint64_t *present = (uint64_t *)(frame + XSTATE_BV);
    int done = 0;

    (void)info;
    if (!(*present & XSTATE_YMM)) {
        memset(frame + YMM_HIGH, 0, 256);
        *present |= XSTATE_YMM;
    }
    /* They come in rows: all that follow are done at once. */
    for (;; done++) {
        const uint8_t *code = (const uint8_t *)machine->gregs[REG_RIP];
        uint64_t sum[4], a[4], b[4];
        int to, i;

        /* Three bytes of VEX: map 0F38, W = 1, 256 bits, 66. */
        if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x87) != 0x85 || (code[3] & 0xfe) != 0xb4)
            break;
        int r = !(code[1] & 0x80), x = !(code[1] & 0x40), base = !(code[1] & 0x20);
        int high = code[3] & 1, first = ~code[2] >> 3 & 15;
        code += 4;
        to = (*code >> 3 & 7) | r << 3;
        if (*code >> 6 == 3)
            read_ymm(frame, (*code++ & 7) | base << 3, b);
        else
            memcpy(b, (const void *)address(machine->gregs, &code, x, base), 32);
        read_ymm(frame, first, a);
        read_ymm(frame, to, sum);
        for (i = 0; i < 4; i++) {
            unsigned __int128 product = (unsigned __int128)(a[i] & MASK52) * (b[i] & MASK52);
            sum[i] += high ? (uint64_t)(product >> 52) : (uint64_t)product & MASK52;
        }
        write_ymm(frame, to, sum);
        machine->gregs[REG_RIP] = (greg_t)code;
    }
    if (!done)
        give_up(number);
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    action.sa_sigaction = on_segv;
    sigaction(SIGSEGV, &action, NULL);
    action.sa_sigaction = on_ill;
    sigaction(SIGILL, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0) {
        fputs("avx_ifma: this processor does not let CPUID fault\n", stderr);
        _exit(77);
    }
}
