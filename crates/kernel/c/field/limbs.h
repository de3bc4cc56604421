/* 256-bit integers as eight 32-bit limbs, least significant first. Knows no modulus.
 *
 * Here and in products.h is the only assembly: each carry chain is one block with operands read and written in place
 * (NVRTC 11.8 refuses early-clobber outputs), beside a portable body of the same contract. */

/* a * b + c, which must stay below 2^64. Said outright, since a compiler that moves the widening of a factor out of a
 * loop then multiplies 64 by 64 bits inside it. */
DEV u64 limbs_wide(u32 a, u32 b, u64 c) {
#if HAS_PTX
    u64 sum = c;
    ASM("mad.wide.u32 %0, %1, %2, %0;" : "+l"(sum) : "r"(a), "r"(b));
    return sum;
#else
    return (u64)a * b + c;
#endif
}

/* a + b on the multiplier's pipe, which code that is all logic leaves idle. `one` is 1 and comes from memory (OPAQUE_ONE),
 * so that no compiler makes it an addition again, whose pipe is that of logic. */
DEV u32 u32_sum(u32 a, u32 b, u32 one) {
#if HAS_PTX
    u32 sum = b;
    ASM("mad.lo.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(one));
    return sum;
#else
    (void)one;
    return a + b;
#endif
}

/* r[0..7] += a[0..7]; returns count plus the carry. */
DEV u32 u256_add_count(u32 *r, const u32 *a, u32 count) {
#if HAS_PTX
    ASM("add.cc.u32 %0, %0, %9;\n\t"
        "addc.cc.u32 %1, %1, %10;\n\t"
        "addc.cc.u32 %2, %2, %11;\n\t"
        "addc.cc.u32 %3, %3, %12;\n\t"
        "addc.cc.u32 %4, %4, %13;\n\t"
        "addc.cc.u32 %5, %5, %14;\n\t"
        "addc.cc.u32 %6, %6, %15;\n\t"
        "addc.cc.u32 %7, %7, %16;\n\t"
        "addc.u32 %8, %8, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
          "+r"(r[7]), "+r"(count)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
    return count;
#else
    u64 sum = 0;
    UNROLL
    for (int i = 0; i < 8; i++) {
        sum += (u64)r[i] + a[i];
        r[i] = (u32)sum;
        sum >>= 32;
    }
    return count + (u32)sum;
#endif
}

/* r[0..7] += a[0..7]; returns the carry. */
DEV u32 u256_add(u32 *r, const u32 *a) {
    return u256_add_count(r, a, 0);
}

/* r[0..7] -= a[0..7]; returns all ones when it borrowed, else 0. */
DEV u32 u256_sub(u32 *r, const u32 *a) {
    u32 borrow = 0;
#if HAS_PTX
    ASM("sub.cc.u32 %0, %0, %9;\n\t"
        "subc.cc.u32 %1, %1, %10;\n\t"
        "subc.cc.u32 %2, %2, %11;\n\t"
        "subc.cc.u32 %3, %3, %12;\n\t"
        "subc.cc.u32 %4, %4, %13;\n\t"
        "subc.cc.u32 %5, %5, %14;\n\t"
        "subc.cc.u32 %6, %6, %15;\n\t"
        "subc.cc.u32 %7, %7, %16;\n\t"
        "subc.u32 %8, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
          "+r"(r[7]), "+r"(borrow)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
#else
    u32 bit = 0;
    UNROLL
    for (int i = 0; i < 8; i++) {
        u64 difference = (u64)r[i] - a[i] - bit;
        r[i] = (u32)difference;
        bit = (u32)(difference >> 63);
    }
    borrow = 0u - bit;
#endif
    return borrow;
}

/* r[0..7] += a0 + a1 2^32 + a2 2^64; returns the carry. */
DEV u32 u256_add_low(u32 *r, u32 a0, u32 a1, u32 a2) {
    u32 carry = 0;
#if HAS_PTX
    ASM("add.cc.u32 %0, %0, %9;\n\t"
        "addc.cc.u32 %1, %1, %10;\n\t"
        "addc.cc.u32 %2, %2, %11;\n\t"
        "addc.cc.u32 %3, %3, 0;\n\t"
        "addc.cc.u32 %4, %4, 0;\n\t"
        "addc.cc.u32 %5, %5, 0;\n\t"
        "addc.cc.u32 %6, %6, 0;\n\t"
        "addc.cc.u32 %7, %7, 0;\n\t"
        "addc.u32 %8, 0, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
          "+r"(r[7]), "+r"(carry)
        : "r"(a0), "r"(a1), "r"(a2));
#else
    u32 a[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    a[0] = a0;
    a[1] = a1;
    a[2] = a2;
    carry = u256_add(r, a);
#endif
    return carry;
}

/* r[0..7] -= a0 + a1 2^32; a borrow out of limb 7 is dropped. */
DEV void u256_sub_low(u32 *r, u32 a0, u32 a1) {
#if HAS_PTX
    ASM("sub.cc.u32 %0, %0, %8;\n\t"
        "subc.cc.u32 %1, %1, %9;\n\t"
        "subc.cc.u32 %2, %2, 0;\n\t"
        "subc.cc.u32 %3, %3, 0;\n\t"
        "subc.cc.u32 %4, %4, 0;\n\t"
        "subc.cc.u32 %5, %5, 0;\n\t"
        "subc.cc.u32 %6, %6, 0;\n\t"
        "subc.u32 %7, %7, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
          "+r"(r[7])
        : "r"(a0), "r"(a1));
#else
    u32 a[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    a[0] = a0;
    a[1] = a1;
    u256_sub(r, a);
#endif
}

/* r[0..2] += a0 + a1 2^32; a carry out of limb 2 is dropped. */
DEV void u96_add_low(u32 *r, u32 a0, u32 a1) {
#if HAS_PTX
    ASM("add.cc.u32 %0, %0, %3;\n\t"
        "addc.cc.u32 %1, %1, %4;\n\t"
        "addc.u32 %2, %2, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2])
        : "r"(a0), "r"(a1));
#else
    u64 sum = (u64)r[0] + a0;
    r[0] = (u32)sum;
    sum = (sum >> 32) + r[1] + a1;
    r[1] = (u32)sum;
    r[2] += (u32)(sum >> 32);
#endif
}

/* r[0..1] += a0 + a1 2^32; a carry out of limb 1 is dropped, and counted in *lost. */
DEV void u64_add_short(u32 *r, u32 a0, u32 a1, u32 *lost) {
    u32 sum[3];
    sum[0] = r[0];
    sum[1] = r[1];
    sum[2] = *lost;
    u96_add_low(sum, a0, a1);
    r[0] = sum[0];
    r[1] = sum[1];
    *lost = sum[2];
}

/* r[0..2] += a0 + a1 2^32 + a2 2^64; a carry out of limb 2 is dropped, and counted in *lost. */
DEV void u96_add_short(u32 *r, u32 a0, u32 a1, u32 a2, u32 *lost) {
#if HAS_PTX
    u32 count = *lost;
    ASM("add.cc.u32 %0, %0, %4;\n\t"
        "addc.cc.u32 %1, %1, %5;\n\t"
        "addc.cc.u32 %2, %2, %6;\n\t"
        "addc.u32 %3, %3, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(count)
        : "r"(a0), "r"(a1), "r"(a2));
    *lost = count;
#else
    u32 carry = 0;
    u64 sum;
    u64_add_short(r, a0, a1, &carry);
    sum = (u64)r[2] + a2 + carry;
    r[2] = (u32)sum;
    *lost += (u32)(sum >> 32);
#endif
}

/* r[0..1] -= a0 + a1 2^32; a borrow out of limb 1 is dropped, and taken off *lost. */
DEV void u64_sub_short(u32 *r, u32 a0, u32 a1, u32 *lost) {
#if HAS_PTX
    u32 count = *lost;
    ASM("sub.cc.u32 %0, %0, %3;\n\t"
        "subc.cc.u32 %1, %1, %4;\n\t"
        "subc.u32 %2, %2, 0;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(count)
        : "r"(a0), "r"(a1));
    *lost = count;
#else
    u64 difference = (u64)r[0] - a0;
    r[0] = (u32)difference;
    difference = (u64)r[1] - a1 - (difference >> 63);
    r[1] = (u32)difference;
    *lost -= (u32)(difference >> 63);
#endif
}

/* r[0..1] += a; a carry out of limb 1 is dropped. */
DEV void u64_add_low(u32 *r, u32 a) {
#if HAS_PTX
    ASM("add.cc.u32 %0, %0, %2;\n\t"
        "addc.u32 %1, %1, 0;"
        : "+r"(r[0]), "+r"(r[1])
        : "r"(a));
#else
    u64 sum = (u64)r[0] + a;
    r[0] = (u32)sum;
    r[1] += (u32)(sum >> 32);
#endif
}

/* Whether x is set in any lane of the warp, where lanes come in warps: all of a block ask, and ask equally often. Compilers
 * bring lanes together here that would else go on one by one. */
DEV u32 lanes_any(u32 x) {
#if HAS_PTX
    u32 any;
    ASM("{\n\t"
        ".reg .pred in, out;\n\t"
        "setp.ne.u32 in, %1, 0;\n\t"
        "vote.sync.any.pred out, in, 0xffffffff;\n\t"
        "selp.u32 %0, 1, 0, out;\n\t"
        "}"
        : "=r"(any)
        : "r"(x));
    return any;
#else
    return x;
#endif
}

/* The top bytes of four words, that of a in the lowest byte. */
DEV u32 top_bytes(u32 a, u32 b, u32 c, u32 d) {
#if HAS_PTX
    u32 low, high, out;
    ASM("prmt.b32 %0, %1, %2, 0x0073;" : "=r"(low) : "r"(a), "r"(b));
    ASM("prmt.b32 %0, %1, %2, 0x0073;" : "=r"(high) : "r"(c), "r"(d));
    ASM("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(out) : "r"(low), "r"(high));
    return out;
#else
    return a >> 24 | b >> 24 << 8 | c >> 24 << 16 | d >> 24 << 24;
#endif
}

/* sum + the products of the four bytes of a with those of b. */
DEV u32 bytes_mad(u32 a, u32 b, u32 sum) {
#if HAS_PTX
    u32 out;
    ASM("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
    return out;
#else
    UNROLL
    for (int i = 0; i < 32; i += 8) sum += (a >> i & 255u) * (b >> i & 255u);
    return sum;
#endif
}
