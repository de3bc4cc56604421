/* Entry points for taproot outputs without scripts (BIP-341): 3 keys a point, a key and its negative being one.
 *
 * The digest of a key with x coordinate x is that of P + t G, P the point of this x with an even y, t the tagged hash
 * TapTweak of x. beta acts on x alone, so one parity decides for all images of a point. t is taken as it is: BIP-341 rules
 * out t >= n, which one hash in 2^128 is.
 *
 * tweak.h leaves X / ZZ for each key. The keys of up to TAPROOT_POINTS points wait in memory for one inversion of all their
 * ZZ: 3 M a key and 1 M for x. Where ZZ is zero, the sum met what was added to it, and the host is asked to
 * look at this key itself (CODE_OPEN). */

#define TAPROOT_KEYS (3 * TAPROOT_POINTS)

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

/* An element of shared memory, where words stand most significant first, as a number. */
DEV void taproot_load(fe *r, LOCAL const quad *spare, u32 element) {
    fe words;
    fe_load_local(&words, spare, element, BLOCK);
    UNROLL
    for (int i = 0; i < 8; i++) r->v[i] = words.v[7 - i];
}

/* Adds the tweak to image `image` of the point in shared memory, as key k of those that wait. */
DEV void taproot_key(LOCAL const quad *spare, u32 image, GLOBAL quad *sums, GLOBAL const quad *tweaks, u32 lanes, u32 k,
                     u32 one) {
    fe x, y, zz;
    u32 t[8];
    fe_load_local(&x, spare, image, BLOCK);
    taproot_tweak(t, x.v, one);
    taproot_load(&x, spare, image);
    taproot_load(&y, spare, MESSAGE_Y);
    if (y.v[0] & 1) taproot_load(&y, spare, MESSAGE_Y + 1);
    tweak_point(&x, &zz, &y, t, tweaks);
    fe_norm(&zz, &zz);
    fe_store_global(sums, SUM_X(k), lanes, &x);
    fe_store_global(sums, SUM_ZZ(k), lanes, &zz);
    if (k == 0) {
        fe_set(&x, 1);
    } else {
        fe_load_global(&x, sums, SUM_PRODUCT, lanes);
    }
    fe_store_global(sums, SUM_BEFORE(k), lanes, &x);
    /* Zero is left out of the product. */
    if (!taproot_is_open(&zz)) fe_mul(&x, &x, &zz);
    fe_store_global(sums, SUM_PRODUCT, lanes, &x);
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

/* `steps` groups of each lane, from the centres on; centres are moved on. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS taproot_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL const u32 *filter,
                                       GLOBAL const quad *tweaks, GLOBAL quad *sums, GLOBAL u32 *hits, u32 lanes,
                                       u32 steps) {
    LOCAL_ARRAY(quad, block, MESSAGE_QUADS * BLOCK);
    LOCAL quad *spare = block + LOCAL_ID;
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, alive = 1, one = OPAQUE_ONE;
    filter_state state;

    scratch += lane;
    sums += lane;
    filter_load(&state, filter, hits);
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        u32 was = alive, waiting = 0;
        /* The inversion's tree lies where the points will: 4 quads a lane, and a point takes 10. */
        alive = points_prepare(centres, scratch, search_table, block, lanes, lane, alive);
        BARRIER();
        if (was && !alive) search_emit(hits, lane, step, CODE_FAULT, 0);
        ROLLED
        for (u32 n = 0; n <= 2 * GROUP; n++) {
            u32 last;
            fe x, y;
            points_at(&x, &y, scratch, search_table, lanes, n);
            points_images(spare, &x, &y);
            ROLLED
            for (u32 image = 0; image < 3; image++) {
                taproot_key(spare, image, sums, tweaks, lanes, waiting, one);
                waiting++;
            }
            if (waiting < TAPROOT_KEYS && n < 2 * GROUP) continue;
            fe_load_global(&x, sums, SUM_PRODUCT, lanes);
            walk_invert(&x, block);
            BARRIER();
            last = waiting - 1; /* of image 2 of point n */
            ROLLED
            for (; waiting > 0; waiting--) {
                u32 k = waiting - 1, digest[DIGEST_WORDS], told;
                u32 code = points_code(n - (last - k) / 3) | k % 3 << CODE_IMAGE;
                u32 done = taproot_digest(digest, sums, lanes, k, &x);
                if (alive && !done) search_emit(hits, lane, step, code | 1u << CODE_OPEN, 0);
                if (alive && done && filter_test(&state, digest, hits, &told)) {
                    search_emit(hits, lane, step, code, told);
                }
            }
        }
    }
}

/* Fills the table from a few of its entries, the multiples 1..2^small - 1 of each window, and `giants`, the multiples k
 * 2^small, k = 1, 2, .. up to HALF, window after window: a lane takes one of these, `tasks` in all, and adds to it each of
 * the small ones. Prefix products wait where the entries will be. Multiples of a point that add up to less than its order
 * have different x, so no inverse is missing. */
KERNEL void LAUNCH_BOUNDS taproot_fill(GLOBAL quad *tweaks, GLOBAL const quad *giants, u32 small, u32 tasks) {
    LOCAL_ARRAY(quad, nodes, 4 * BLOCK);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, count = TWEAK_HALF >> small;
    u32 task = lane < tasks ? lane : 0, last = lane < tasks && lane % count + 1 < count ? (1u << small) - 1 : 0;
    GLOBAL quad *window = tweaks + 4 * (u64)(task / count) * TWEAK_HALF;
    /* The giant, d = k 2^small, stands at d - 1, and what comes of the small one j at j behind it. */
    GLOBAL quad *own = window + 4 * (((u64)(task % count + 1) << small) - 1);
    fe c, yc, t, product, x, y;
    fe_load_global(&c, giants + 4 * (u64)task, 0, 1);
    fe_load_global(&yc, giants + 4 * (u64)task, 1, 1);
    if (lane < tasks) {
        fe_store_global(own, 0, 1, &c);
        fe_store_global(own, 1, 1, &yc);
    }
    fe_set(&product, 1);
    ROLLED
    for (u32 j = 1; j <= last; j++) {
        fe_store_global(own, 2 * j, 1, &product);
        fe_load_global(&t, window, 2 * (j - 1), 1);
        fe_sub(&t, &c, &t);
        fe_mul(&product, &product, &t);
    }
    walk_invert(&product, nodes);
    ROLLED
    for (u32 j = last; j > 0; j--) {
        fe inverse, before;
        fe_load_global(&before, own, 2 * j, 1);
        fe_mul(&inverse, &product, &before);
        fe_load_global(&t, window, 2 * (j - 1), 1);
        fe_sub(&x, &c, &t);
        fe_mul(&product, &product, &x);
        fe_load_global(&before, window, 2 * (j - 1) + 1, 1);
        walk_add(&x, &y, &c, &yc, &t, &before, &inverse);
        fe_store_global(own, 2 * j, 1, &x);
        fe_store_global(own, 2 * j + 1, 1, &y);
    }
}
