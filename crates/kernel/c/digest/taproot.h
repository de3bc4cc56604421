/* Taproot outputs without scripts (BIP-341): what programs that make them share.
 *
 * The digest of a key with x coordinate x is that of P + t G, P the point of this x with an even y, t the tagged hash
 * TapTweak of x. t is taken as it is: BIP-341 rules out t >= n, which one hash in 2^128 is.
 *
 * tweak.h leaves X / ZZ for each key. TAPROOT_KEYS keys wait in memory for one inversion of all their ZZ: 3 M a key and
 * 1 M for x. Where ZZ is zero, the sum met what was added to it, and the host is asked to look at this key itself
 * (CODE_OPEN). */

/* Elements of a lane in `sums`: three for each key that waits, and the product of all their ZZ. */
#define SUM_BEFORE(k) (3 * (k)) /* the product of those before it */
#define SUM_ZZ(k) (3 * (k) + 1)
#define SUM_X(k) (3 * (k) + 2)
#define SUM_PRODUCT (3 * TAPROOT_KEYS)

/* t = the tweak of x, least significant word first; words: x, most significant first. */
DEV void taproot_tweak(u32 *t, const u32 *words, u32 one) {
    /* SHA-256 after the block SHA-256("TapTweak"), twice. */
    u32 state[8] = {0xd129a2f3u, 0x701c655du, 0x6583b6c3u, 0xb9419727u, 0x95f4e232u, 0x94fd54f4u, 0xa2ae8d85u, 0x47ca590bu};
    u32 block[16];
    UNROLL
    for (int i = 0; i < 16; i++) block[i] = i < 8 ? words[i] : 0;
    block[8] = 0x80000000u;
    block[15] = 768; /* bits */
    sha256_block(state, block, one);
    UNROLL
    for (int i = 0; i < 8; i++) t[i] = state[7 - i];
}

/* Whether a ZZ, below p, is zero. */
DEV u32 taproot_is_open(const fe *zz) {
    u32 any = 0;
    UNROLL
    for (int i = 0; i < 8; i++) any |= zz->v[i];
    return any == 0;
}

/* Adds t G to (x, y), y even, as key k of those that wait. x and t are used up. */
DEV void taproot_wait(fe *x, const fe *y, u32 *t, GLOBAL quad *sums, GLOBAL const quad *tweaks, u32 lanes, u32 k) {
    fe zz;
    tweak_point(x, &zz, y, t, tweaks);
    fe_norm(&zz, &zz);
    fe_store_global(sums, SUM_X(k), lanes, x);
    fe_store_global(sums, SUM_ZZ(k), lanes, &zz);
    if (k == 0) {
        fe_set(x, 1);
    } else {
        fe_load_global(x, sums, SUM_PRODUCT, lanes);
    }
    fe_store_global(sums, SUM_BEFORE(k), lanes, x);
    /* Zero is left out of the product. */
    if (!taproot_is_open(&zz)) fe_mul(x, x, &zz);
    fe_store_global(sums, SUM_PRODUCT, lanes, x);
}

/* The digest of key k, given the inverse of the product of the ZZ up to it, which becomes that of those before. Whether
 * there is one. */
DEV u32 taproot_digest(u32 *digest, GLOBAL const quad *sums, u32 lanes, u32 k, fe *inverse) {
    fe x, a;
    u32 open;
    fe_load_global(&x, sums, SUM_BEFORE(k), lanes);
    fe_mul(&x, &x, inverse);
    fe_load_global(&a, sums, SUM_ZZ(k), lanes);
    open = taproot_is_open(&a);
    if (!open) fe_mul(inverse, inverse, &a);
    fe_load_global(&a, sums, SUM_X(k), lanes);
    fe_mul(&x, &x, &a);
    fe_norm(&x, &x);
    UNROLL
    for (int i = 0; i < 8; i++) digest[i] = x.v[7 - i];
    return !open;
}
