/* Products of 256-bit integers, and the chains they are made of. Assembly as in limbs.h. */

#if !HAS_PTX
/* acc[0..1] += a * b + carry, carry 0 or 1; returns the carry: one link of a chain. */
DEV u32 limbs_step(u32 *acc, u32 a, u32 b, u32 carry) {
    u64 product = (u64)a * b;
    u64 low = (u64)acc[0] + (u32)product + carry;
    u64 high = (u64)acc[1] + (product >> 32) + (low >> 32);
    acc[0] = (u32)low;
    acc[1] = (u32)high;
    return (u32)(high >> 32);
}
#endif

/* acc[0..7] += (a0 + a1 2^64 + a2 2^128 + a3 2^192) * b; the sum must stay below 2^256. */
DEV void limbs_mad(u32 *acc, u32 a0, u32 a1, u32 a2, u32 a3, u32 b) {
#if HAS_PTX
    ASM("mad.lo.cc.u32 %0, %8, %12, %0;\n\t"
        "madc.hi.cc.u32 %1, %8, %12, %1;\n\t"
        "madc.lo.cc.u32 %2, %9, %12, %2;\n\t"
        "madc.hi.cc.u32 %3, %9, %12, %3;\n\t"
        "madc.lo.cc.u32 %4, %10, %12, %4;\n\t"
        "madc.hi.cc.u32 %5, %10, %12, %5;\n\t"
        "madc.lo.cc.u32 %6, %11, %12, %6;\n\t"
        "madc.hi.u32 %7, %11, %12, %7;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
          "+r"(acc[6]), "+r"(acc[7])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b));
#else
    u32 carry = limbs_step(acc, a0, b, 0);
    carry = limbs_step(acc + 2, a1, b, carry);
    carry = limbs_step(acc + 4, a2, b, carry);
    limbs_step(acc + 6, a3, b, carry);
#endif
}

/* The same with a carry: *top is set to bit 256 of the sum. */
DEV void limbs_mad_carry(u32 *acc, u32 *top, u32 a0, u32 a1, u32 a2, u32 a3, u32 b) {
#if HAS_PTX
    u32 out = 0;
    ASM("mad.lo.cc.u32 %0, %9, %13, %0;\n\t"
        "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
        "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
        "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
        "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
        "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
        "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
        "madc.hi.cc.u32 %7, %12, %13, %7;\n\t"
        "addc.u32 %8, 0, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
          "+r"(acc[6]), "+r"(acc[7]), "+r"(out)
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b));
    *top = out;
#else
    u32 carry = limbs_step(acc, a0, b, 0);
    carry = limbs_step(acc + 2, a1, b, carry);
    carry = limbs_step(acc + 4, a2, b, carry);
    *top = limbs_step(acc + 6, a3, b, carry);
#endif
}

/* r = even + odd 2^32, below 2^512: even has limbs 0..15, odd 0..14. */
DEV void u512_merge(u32 *r, const u32 *even, const u32 *odd) {
    r[0] = even[0];
#if HAS_PTX
    UNROLL
    for (int i = 1; i < 16; i++) r[i] = even[i];
    ASM("add.cc.u32 %0, %0, %15;\n\t"
        "addc.cc.u32 %1, %1, %16;\n\t"
        "addc.cc.u32 %2, %2, %17;\n\t"
        "addc.cc.u32 %3, %3, %18;\n\t"
        "addc.cc.u32 %4, %4, %19;\n\t"
        "addc.cc.u32 %5, %5, %20;\n\t"
        "addc.cc.u32 %6, %6, %21;\n\t"
        "addc.cc.u32 %7, %7, %22;\n\t"
        "addc.cc.u32 %8, %8, %23;\n\t"
        "addc.cc.u32 %9, %9, %24;\n\t"
        "addc.cc.u32 %10, %10, %25;\n\t"
        "addc.cc.u32 %11, %11, %26;\n\t"
        "addc.cc.u32 %12, %12, %27;\n\t"
        "addc.cc.u32 %13, %13, %28;\n\t"
        "addc.u32 %14, %14, %29;"
        : "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]),
          "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]),
          "+r"(r[15])
        : "r"(odd[0]), "r"(odd[1]), "r"(odd[2]), "r"(odd[3]), "r"(odd[4]), "r"(odd[5]), "r"(odd[6]),
          "r"(odd[7]), "r"(odd[8]), "r"(odd[9]), "r"(odd[10]), "r"(odd[11]), "r"(odd[12]),
          "r"(odd[13]), "r"(odd[14]));
#else
    u64 sum = 0;
    UNROLL
    for (int i = 1; i < 16; i++) {
        sum += (u64)even[i] + odd[i - 1];
        r[i] = (u32)sum;
        sum >>= 32;
    }
#endif
}

#if COUNT_CARRIES

/* {*low, *high} += a * b; the carry is added to *count.
 *
 * The count takes the multiplier's way (0 * a + count + carry) where a zero the compiler cannot see
 * through is at hand: on sm_90 a product with carry-in is half rate, and plain additions share the pipe
 * of wide products, but 32-bit products do not. */
DEV void limbs_mad_count(u32 *low, u32 *high, u32 *count, u32 a, u32 b) {
#if HAS_PTX && defined(OPAQUE_ZERO)
    ASM("mad.lo.cc.u32 %0, %3, %4, %0;\n\t"
        "madc.hi.cc.u32 %1, %3, %4, %1;\n\t"
        "madc.lo.u32 %2, %3, %5, %2;"
        : "+r"(*low), "+r"(*high), "+r"(*count)
        : "r"(a), "r"(b), "r"(OPAQUE_ZERO));
#elif HAS_PTX
    ASM("mad.lo.cc.u32 %0, %3, %4, %0;\n\t"
        "madc.hi.cc.u32 %1, %3, %4, %1;\n\t"
        "addc.u32 %2, %2, 0;"
        : "+r"(*low), "+r"(*high), "+r"(*count)
        : "r"(a), "r"(b));
#else
    u64 sum = ((u64)*high << 32 | *low) + (u64)a * b;
    *count += sum < (u64)a * b ? 1u : 0u;
    *low = (u32)sum;
    *high = (u32)(sum >> 32);
#endif
}

/* r[0..15] = a * b + addend, addend below 2^32.
 *
 * Schoolbook by weight. All products of weight w gather in one 64-bit sum of limbs w and w + 1 (even
 * weights in `even`, odd ones in `odd`, one limb lower), without carry-in; their carries are counted in
 * count[w + 2]. The sum of an even weight begins with the counts of limbs w and w + 1, which are
 * complete by then; no count reaches limb 16. */
DEV void u256_mul(u32 *r, const u32 *a, const u32 *b, u32 addend) {
    u32 even[16], odd[16], count[17];
    UNROLL
    for (int w = 0; w < 17; w++) count[w] = 0;
    UNROLL
    for (int w = 0; w < 15; w++) {
        int first = w < 8 ? 0 : w - 7, last = w < 8 ? w : 7;
        u32 *sum = w % 2 ? odd + w - 1 : even + w;
        if (w == 0 || w % 2) {
            u64 product = limbs_wide(a[first], b[w - first], w == 0 ? addend : 0u);
            sum[0] = (u32)product;
            sum[1] = (u32)(product >> 32);
            first++;
        } else {
            sum[0] = count[w];
            sum[1] = count[w + 1];
        }
        UNROLL
        for (int i = first; i <= last; i++) limbs_mad_count(sum, sum + 1, count + w + 2, a[i], b[w - i]);
    }
    odd[14] = 0;
    u512_merge(r, even, odd);
}

/* r[0..15] = a * b + c. */
DEV void u256_mul_add(u32 *r, const u32 *a, const u32 *b, const u32 *c) {
    u256_mul(r, a, b, 0);
    u256_add_low(r + 8, u256_add(r, c), 0, 0);
}

#else

/* The rows of b[1..7] of a product, whose first row is in `even` up to limb 8 and in `odd` up to limb 7, and r[0..15] = all.
 *
 * Schoolbook in rows. Products of even weight gather in `even`, of odd weight in `odd` (stored one
 * limb lower), so that a row is two chains of four products whose 64-bit halves never overlap.
 * In the row of b[i] the even limbs of a end in a carry at limb i + 8; the odd limbs reach limbs
 * i + 8 and i + 9, which hold at most that carry of the row before, and cannot overflow. */
DEV void u256_mul_rows(u32 *r, u32 *even, u32 *odd, const u32 *a, const u32 *b) {
    UNROLL
    for (int i = 1; i < 8; i += 2) {
        even[i + 8] = 0;
        limbs_mad_carry(odd + i - 1, odd + i + 7, a[0], a[2], a[4], a[6], b[i]);
        limbs_mad(even + i + 1, a[1], a[3], a[5], a[7], b[i]);
        if (i < 7) {
            odd[i + 8] = 0;
            limbs_mad_carry(even + i + 1, even + i + 9, a[0], a[2], a[4], a[6], b[i + 1]);
            limbs_mad(odd + i + 1, a[1], a[3], a[5], a[7], b[i + 1]);
        }
    }
    u512_merge(r, even, odd);
}

/* odd[0..7] = the odd limbs of a times b, one limb lower. */
DEV void u256_mul_odd(u32 *odd, const u32 *a, u32 b) {
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        u64 product = limbs_wide(a[i + 1], b, 0);
        odd[i] = (u32)product;
        odd[i + 1] = (u32)(product >> 32);
    }
}

/* r[0..15] = a * b + addend, addend below 2^32. */
DEV void u256_mul(u32 *r, const u32 *a, const u32 *b, u32 addend) {
    u32 even[16], odd[16];
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        u64 product = limbs_wide(a[i], b[0], i == 0 ? addend : 0u);
        even[i] = (u32)product;
        even[i + 1] = (u32)(product >> 32);
    }
    even[8] = 0;
    u256_mul_odd(odd, a, b[0]);
    u256_mul_rows(r, even, odd, a, b);
}

/* r[0..15] = a * b + c, c neither a nor b, whose limbs a chain would overwrite: the first row takes up c, and ends in a carry
 * as the others do. */
DEV void u256_mul_add(u32 *r, const u32 *a, const u32 *b, const u32 *c) {
    u32 even[16], odd[16];
    UNROLL
    for (int i = 0; i < 8; i++) even[i] = c[i];
    limbs_mad_carry(even, even + 8, a[0], a[2], a[4], a[6], b[0]);
    u256_mul_odd(odd, a, b[0]);
    u256_mul_rows(r, even, odd, a, b);
}

#endif

/* acc[0..1] += a * b; returns the carry. */
DEV u32 limbs_mad_one(u32 *acc, u32 a, u32 b) {
#if HAS_PTX
    u32 out = 0;
    ASM("mad.lo.cc.u32 %0, %3, %4, %0;\n\t"
        "madc.hi.cc.u32 %1, %3, %4, %1;\n\t"
        "addc.u32 %2, 0, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(out)
        : "r"(a), "r"(b));
    return out;
#else
    return limbs_step(acc, a, b, 0);
#endif
}

/* acc[0..5] += (a0 + a1 2^64 + a2 2^128) * b; *top is set to the carry. */
DEV void limbs_mad_three(u32 *acc, u32 *top, u32 a0, u32 a1, u32 a2, u32 b) {
#if HAS_PTX
    u32 out = 0;
    ASM("mad.lo.cc.u32 %0, %7, %10, %0;\n\t"
        "madc.hi.cc.u32 %1, %7, %10, %1;\n\t"
        "madc.lo.cc.u32 %2, %8, %10, %2;\n\t"
        "madc.hi.cc.u32 %3, %8, %10, %3;\n\t"
        "madc.lo.cc.u32 %4, %9, %10, %4;\n\t"
        "madc.hi.cc.u32 %5, %9, %10, %5;\n\t"
        "addc.u32 %6, 0, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]), "+r"(out)
        : "r"(a0), "r"(a1), "r"(a2), "r"(b));
    *top = out;
#else
    u32 carry = limbs_step(acc, a0, b, 0);
    carry = limbs_step(acc + 2, a1, b, carry);
    *top = limbs_step(acc + 4, a2, b, carry);
#endif
}

/* acc[0..3] += (a0 + a1 2^64) * b; *top is set to the carry. */
DEV void limbs_mad_two(u32 *acc, u32 *top, u32 a0, u32 a1, u32 b) {
#if HAS_PTX
    u32 out = 0;
    ASM("mad.lo.cc.u32 %0, %5, %7, %0;\n\t"
        "madc.hi.cc.u32 %1, %5, %7, %1;\n\t"
        "madc.lo.cc.u32 %2, %6, %7, %2;\n\t"
        "madc.hi.cc.u32 %3, %6, %7, %3;\n\t"
        "addc.u32 %4, 0, 0;"
        : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(out)
        : "r"(a0), "r"(a1), "r"(b));
    *top = out;
#else
    u32 carry = limbs_step(acc, a0, b, 0);
    *top = limbs_step(acc + 2, a1, b, carry);
#endif
}

/* r[1..15] *= 2; r[0] is zero, and what leaves limb 15 is dropped. A chain is 3 % of a squaring faster than shifts. */
DEV void u512_double(u32 *r) {
#if HAS_PTX
    ASM("add.cc.u32 %0, %0, %0;\n\t"
        "addc.cc.u32 %1, %1, %1;\n\t"
        "addc.cc.u32 %2, %2, %2;\n\t"
        "addc.cc.u32 %3, %3, %3;\n\t"
        "addc.cc.u32 %4, %4, %4;\n\t"
        "addc.cc.u32 %5, %5, %5;\n\t"
        "addc.cc.u32 %6, %6, %6;\n\t"
        "addc.cc.u32 %7, %7, %7;\n\t"
        "addc.cc.u32 %8, %8, %8;\n\t"
        "addc.cc.u32 %9, %9, %9;\n\t"
        "addc.cc.u32 %10, %10, %10;\n\t"
        "addc.cc.u32 %11, %11, %11;\n\t"
        "addc.cc.u32 %12, %12, %12;\n\t"
        "addc.cc.u32 %13, %13, %13;\n\t"
        "addc.u32 %14, %14, %14;"
        : "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
          "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]), "+r"(r[15]));
#else
    UNROLL
    for (int i = 15; i > 0; i--) r[i] = r[i] << 1 | r[i - 1] >> 31;
#endif
}

/* r[0..15] += the squares of a's limbs, limb i's at 2^(64 i); the sum must stay below 2^512. */
DEV void u512_add_squares(u32 *r, const u32 *a) {
#if HAS_PTX
    ASM("mad.lo.cc.u32 %0, %16, %16, %0;\n\t"
        "madc.hi.cc.u32 %1, %16, %16, %1;\n\t"
        "madc.lo.cc.u32 %2, %17, %17, %2;\n\t"
        "madc.hi.cc.u32 %3, %17, %17, %3;\n\t"
        "madc.lo.cc.u32 %4, %18, %18, %4;\n\t"
        "madc.hi.cc.u32 %5, %18, %18, %5;\n\t"
        "madc.lo.cc.u32 %6, %19, %19, %6;\n\t"
        "madc.hi.cc.u32 %7, %19, %19, %7;\n\t"
        "madc.lo.cc.u32 %8, %20, %20, %8;\n\t"
        "madc.hi.cc.u32 %9, %20, %20, %9;\n\t"
        "madc.lo.cc.u32 %10, %21, %21, %10;\n\t"
        "madc.hi.cc.u32 %11, %21, %21, %11;\n\t"
        "madc.lo.cc.u32 %12, %22, %22, %12;\n\t"
        "madc.hi.cc.u32 %13, %22, %22, %13;\n\t"
        "madc.lo.cc.u32 %14, %23, %23, %14;\n\t"
        "madc.hi.u32 %15, %23, %23, %15;"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]),
          "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(r[12]), "+r"(r[13]), "+r"(r[14]),
          "+r"(r[15])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
#else
    u32 carry = 0;
    UNROLL
    for (int i = 0; i < 8; i++) carry = limbs_step(r + 2 * i, a[i], a[i], carry);
#endif
}

/* r[0..15] = a^2, with 36 products instead of 64.
 *
 * Products of two different limbs gather as in u256_mul, once each: in the row of a[i] the limbs a[i + 2], a[i + 4], ..
 * in `even`, a[i + 1], a[i + 3], .. in `odd`. A row whose last product lands on limbs that hold at most the carry
 * of the row before cannot overflow; its top is zero and dropped. Their sum is doubled (it is below
 * 2^511, being less than half of a^2), and the squares are added. */
DEV void u256_sqr(u32 *r, const u32 *a) {
    u32 even[16], odd[16], none;
    UNROLL
    for (int i = 0; i < 16; i++) even[i] = odd[i] = 0;
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        u64 o = limbs_wide(a[i + 1], a[0], 0);
        odd[i] = (u32)o;
        odd[i + 1] = (u32)(o >> 32);
        if (i > 0) {
            u64 e = limbs_wide(a[i], a[0], 0);
            even[i] = (u32)e;
            even[i + 1] = (u32)(e >> 32);
        }
    }
    limbs_mad_three(odd + 2, odd + 8, a[2], a[4], a[6], a[1]);
    limbs_mad_three(even + 4, &none, a[3], a[5], a[7], a[1]);
    limbs_mad_three(odd + 4, &none, a[3], a[5], a[7], a[2]);
    limbs_mad_two(even + 6, even + 10, a[4], a[6], a[2]);
    limbs_mad_two(odd + 6, odd + 10, a[4], a[6], a[3]);
    limbs_mad_two(even + 8, &none, a[5], a[7], a[3]);
    limbs_mad_two(odd + 8, &none, a[5], a[7], a[4]);
    even[12] = limbs_mad_one(even + 10, a[6], a[4]);
    odd[12] = limbs_mad_one(odd + 10, a[6], a[5]);
    limbs_mad_one(even + 12, a[7], a[5]);
    limbs_mad_one(odd + 12, a[7], a[6]);
    u512_merge(r, even, odd);
    u512_double(r);
    u512_add_squares(r, a);
}
