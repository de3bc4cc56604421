/* Keccak-f[1600] of messages of one block (FIPS 202, with Keccak's own padding byte 0x01). Knows bytes only.
 *
 * A state is 25 lanes of 64 bits, lane x + 5 y at a[x + 5 * y]; the first 17 are the block. A round is theta,
 * rho, pi, chi, iota. The first and the last round are written apart, so that the compiler folds the lanes a
 * caller leaves constant and drops the words nobody reads; the 22 between are a loop. The loop matters: 182
 * instructions a round, all of 24 rounds spelled out (66 KiB of code) run at 3.58 G/s on an H200, as a loop at
 * 4.03, which is two cycles for each of 4,170 logic and shift instructions, all their pipe can do (2026-11).
 * theta's D is never formed: a ^ C[x - 1] ^ rot(C[x + 1], 1) is one three-input instruction a word. */

/* The last byte of a block's padding, in lane 16. */
#define KECCAK_PAD U64C(0x8000000000000000)

CONSTANT_DATA(u64, keccak_iota, 24) = {
    U64C(0x0000000000000001), U64C(0x0000000000008082), U64C(0x800000000000808a), U64C(0x8000000080008000),
    U64C(0x000000000000808b), U64C(0x0000000080000001), U64C(0x8000000080008081), U64C(0x8000000000008009),
    U64C(0x000000000000008a), U64C(0x0000000000000088), U64C(0x0000000080008009), U64C(0x000000008000000a),
    U64C(0x000000008000808b), U64C(0x800000000000008b), U64C(0x8000000000008089), U64C(0x8000000000008003),
    U64C(0x8000000000008002), U64C(0x8000000000000080), U64C(0x000000000000800a), U64C(0x800000008000000a),
    U64C(0x8000000080008081), U64C(0x8000000000008080), U64C(0x0000000080000001), U64C(0x8000000080008008),
};

DEV u64 keccak_rotl(u64 v, u32 n) {
    return n == 0 ? v : v << n | v >> (64 - n);
}

/* By how much rho turns lane `lane`. Constant once loops are unrolled. */
DEV u32 keccak_rho(int lane) {
    const u32 offsets[25] = {0, 1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                             25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};
    return offsets[lane];
}

/* Where pi puts lane `lane`. */
DEV int keccak_pi(int lane) {
    int x = lane % 5, y = lane / 5;
    return y + 5 * ((2 * x + 3 * y) % 5);
}

/* c = column parities, r = the same turned by one: theta is a ^ c[x - 1] ^ r[x + 1]. */
DEV void keccak_columns(u64 *c, u64 *r, const u64 *a) {
    UNROLL
    for (int x = 0; x < 5; x++) {
        c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
        r[x] = keccak_rotl(c[x], 1);
    }
}

/* b = a after theta, rho and pi. */
DEV void keccak_linear(u64 *b, const u64 *a) {
    u64 c[5], r[5];
    keccak_columns(c, r, a);
    UNROLL
    for (int i = 0; i < 25; i++) {
        b[keccak_pi(i)] = keccak_rotl(a[i] ^ c[(i + 4) % 5] ^ r[(i + 1) % 5], keccak_rho(i));
    }
}

/* a = b after chi and iota. */
DEV void keccak_chi(u64 *a, const u64 *b, u64 iota) {
    UNROLL
    for (int i = 0; i < 25; i++) {
        int row = i - i % 5;
        a[i] = b[i] ^ (~b[row + (i + 1) % 5] & b[row + (i + 2) % 5]);
    }
    a[0] ^= iota;
}

/* From a after the first round to the hash: out[0..3], of which a caller uses what it needs. */
DEV void keccak_finish(u64 *out, u64 *a) {
    u64 b[25], c[5], r[5], row[5];
    UNROLL_BY_2
    for (int round = 1; round < 23; round++) {
        keccak_linear(b, a);
        keccak_chi(a, b, keccak_iota[round]);
    }
    /* Only row 0 is read, to which pi brings the diagonal. */
    keccak_columns(c, r, a);
    UNROLL
    for (int x = 0; x < 5; x++) {
        row[x] = keccak_rotl(a[6 * x] ^ c[(x + 4) % 5] ^ r[(x + 1) % 5], keccak_rho(6 * x));
    }
    UNROLL
    for (int x = 0; x < 4; x++) out[x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
    out[0] ^= U64C(0x8000000080008008);
}

/* out[0..3] = the hash of the padded block in a[0..16]; a[17..24] are zero. a is used up. */
DEV void keccak_hash(u64 *out, u64 *a) {
    u64 b[25];
    keccak_linear(b, a);
    keccak_chi(a, b, U64C(1));
    keccak_finish(out, a);
}

/* b, the state before the first chi of a block, becomes that of the block with lane `lane` changed by v: theta
 * carries v to the two columns beside it, 11 lanes in all. `lane` is constant. */
DEV void keccak_vary(u64 *b, int lane, u64 v) {
    b[keccak_pi(lane)] ^= keccak_rotl(v, keccak_rho(lane));
    UNROLL
    for (int y = 0; y < 25; y += 5) {
        int after = y + (lane + 1) % 5, before = y + (lane + 4) % 5;
        b[keccak_pi(after)] ^= keccak_rotl(v, keccak_rho(after));
        b[keccak_pi(before)] ^= keccak_rotl(v, (keccak_rho(before) + 1) % 64);
    }
}
