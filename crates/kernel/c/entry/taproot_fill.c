/* Entry point that makes the table of the tweak (tweak.h). */

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
