/* Cutoffs of hints: the exact middle of c orders, for the sixteen hints of a group at a time.
 *
 * A block of lanes goes through all orders of its group once. It counts those from 2^31 on, and sorts the numbers of those
 * blocks whose orders fall into a window around 2^31 into bins: `bins` of them, an even number, 2^shift wide, half of them
 * below 2^31. The counts tell in which bin the middle lies; the few orders of that bin are computed in full and ranked.
 * The shift is 16 at least, so the upper halves of packed orders decide the bin alone.
 *
 * A hint whose middle lies outside the window, or in a bin with more than BIN_ROOM orders, is told to the host, which
 * computes it: with a window of five standard deviations of the middle to either side, one hint in two millions. */

/* lists    for each block of lanes 16 * BINS * BIN_ROOM words: numbers of blocks
 * open     count, capacity, then the hints that could not be settled
 * cutoffs  those of the hints; 0 where the two orders in the middle are equal, and where the hint is open */
KERNEL void LAUNCH_BOUNDS pir_cutoffs(GLOBAL u32 *cutoffs, GLOBAL u32 *lists, GLOBAL u32 *open, KEY_PARAMS,
                                      u64 first_group, u32 groups, u32 first_hint, u32 c, u32 shift, u32 bins,
                                      u32 launched) {
    LOCAL_ARRAY(u32, counts, 16 * BINS);
    LOCAL_ARRAY(u32, upper, 16);
    LOCAL_ARRAY(u32, chosen, 16);
    LOCAL_ARRAY(u32, rank, 16);
    LOCAL_ARRAY(u32, orders, 16 * BIN_ROOM);
    LOCAL_ARRAY(u32, near, 16 * BLOCK);
    u32 key[8] = KEY_WORDS;
    /* The window, whose last order may be that of all. */
    u32 low = 0x80000000u - (bins / 2 << shift), last = (bins << shift) - 1u;
    GLOBAL u32 *list = lists + (u64)GROUP_ID * (16 * BINS * BIN_ROOM);

    ROLLED
    for (u32 g = GROUP_ID; g < groups; g += launched) {
        u64 group = first_group + g;
        u32 over[16];
        UNROLL
        for (u32 i = 0; i < 16; i++) over[i] = 0;
        for (u32 i = LOCAL_ID; i < 16 * BINS; i += BLOCK) counts[i] = 0;
        if (LOCAL_ID < 16) upper[LOCAL_ID] = 0;
        BARRIER();

        ROLLED
        for (u32 block = LOCAL_ID; block < c; block += BLOCK) {
            u32 words[16];
            LOCAL u32 *found = near + LOCAL_ID;
            prf_words(words, key, PRF_CHOICE, group, block);
            /* Few are found, and not by the same hints in all lanes: they are noted first, without a branch, over
             * what was not to be noted. A bin has no use for the lowest bits. */
            UNROLL
            for (u32 i = 0; i < 16; i++) {
                u32 distance = words[i] - low;
                over[i] += words[i] >> 31;
                *found = (distance & ~15u) | i;
                found += distance <= last ? BLOCK : 0;
            }
            ROLLED
            for (LOCAL u32 *one = near + LOCAL_ID; one != found; one += BLOCK) {
                u32 bin = (*one & 15u) * BINS + (*one >> shift);
                u32 at = ATOMIC_ADD_LOCAL(counts + bin, 1u);
                if (at < BIN_ROOM) list[bin * BIN_ROOM + at] = block;
            }
        }
        UNROLL
        for (u32 i = 0; i < 16; i++) {
            ATOMIC_ADD_LOCAL(upper + i, over[i]);
        }
        BARRIER_GLOBAL();

        /* The bin of the middle, and the middle's rank in it. */
        if (LOCAL_ID < 16) {
            u32 i = LOCAL_ID, before = c - upper[i], bin = 0, middle = c / 2;
            for (u32 k = 0; k < bins / 2; k++) before -= counts[i * BINS + k];
            while (before <= middle && bin < bins && before + counts[i * BINS + bin] <= middle) {
                before += counts[i * BINS + bin];
                bin++;
            }
            chosen[i] = bin;
            rank[i] = middle - before;
            if (before > middle || bin == bins || counts[i * BINS + bin] > BIN_ROOM) {
                u32 at = ATOMIC_ADD(open, 1u);
                if (at < open[1]) open[2 + at] = first_hint + 16 * g + i;
                chosen[i] = BINS;
                cutoffs[first_hint + 16 * g + i] = 0;
            }
        }
        BARRIER();

        /* All orders of that bin, in full. */
        ROLLED
        for (u32 n = LOCAL_ID; n < 16 * BIN_ROOM; n += BLOCK) {
            u32 i = n / BIN_ROOM, at = n % BIN_ROOM, bin = chosen[i];
            if (bin < BINS && at < counts[i * BINS + bin]) {
                u32 block = list[(i * BINS + bin) * BIN_ROOM + at];
                u32 order = prf_word(key, PRF_CHOICE, group, block, i);
#if PACKED
                order = (order & 0xffff0000u) | prf_word(key, PRF_TIE, group, block, i) >> 16;
#endif
                orders[n] = order;
            }
        }
        BARRIER();

        ROLLED
        for (u32 n = LOCAL_ID; n < 16 * BIN_ROOM; n += BLOCK) {
            u32 i = n / BIN_ROOM, at = n % BIN_ROOM, bin = chosen[i];
            u32 count = bin < BINS ? counts[i * BINS + bin] : 0;
            if (at < count) {
                u32 less = 0, equal = 0;
                for (u32 k = 0; k < count; k++) {
                    less += orders[i * BIN_ROOM + k] < orders[n];
                    equal += orders[i * BIN_ROOM + k] == orders[n];
                }
                /* Several equal orders say the same here. */
                if (less <= rank[i] && rank[i] < less + equal) {
                    cutoffs[first_hint + 16 * g + i] = less == rank[i] ? orders[n] : 0;
                }
            }
        }
        BARRIER();
    }
}
