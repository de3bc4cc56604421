/* What the march through the blocks leaves over: ties, extras, and the upper halves of pairs. Few entries, so these take
 * them one word at a time. Buffers as for pir_parities. */

/* Settles the listed ties: each is one call of the PRF for the lower half of the order, one for the offset. The list is of
 * hints from `first_hint` on, which has the first id of `first_group`. `lanes` is how many are launched. */
KERNEL void LAUNCH_BOUNDS pir_ties(GLOBAL const u32 *database, GLOBAL const u32 *cutoffs, GLOBAL u32 *sums,
                                   GLOBAL u32 *ties, KEY_PARAMS, u64 first_group, u32 first_hint, u32 first_block, u32 w,
                                   u32 stride, u32 width, u32 lanes) {
    u32 key[8] = KEY_WORDS;
    u32 first = GROUP_ID * BLOCK + LOCAL_ID;
    u32 count = ties[TIES_COUNT], capacity = ties[TIES_CAPACITY];
    if (first == 0 && count > capacity) ties[TIES_LOST] = 1;
    count = count < capacity ? count : capacity;
    for (u32 n = first; n < count; n += lanes) {
        u32 hint = ties[TIES_HEADER + 2 * (u64)n], block = ties[TIES_HEADER + 2 * (u64)n + 1];
        u32 row = hint - first_hint;
        u64 group = first_group + row / 16;
        u32 order = prf_word(key, PRF_TIE, group, block, row % 16) >> 16;
        if (order < (cutoffs[hint] & 0xffffu)) {
            u32 offset = prf_offset(prf_word(key, PRF_CHOICE, group, block, row % 16), w);
            u64 entry = (u64)(block - first_block) * w + offset;
            /* Another tie may be of the same hint. */
            for (u32 k = 0; k < width; k++) ATOMIC_XOR(sums + (u64)row * width + k, database[entry * stride + k]);
        }
    }
}

/* Adds the extras of `hints` hints from `first_hint` on, as far as they lie in `blocks` blocks from `first_block` on;
 * extras are (block, offset) for each hint. */
KERNEL void LAUNCH_BOUNDS pir_extras(GLOBAL const u32 *database, GLOBAL const u32 *cutoffs, GLOBAL u32 *sums,
                                     GLOBAL const u32 *extras, u32 first_hint, u32 hints, u32 first_block, u32 blocks,
                                     u32 w, u32 stride, u32 width) {
    u32 hint = first_hint + GROUP_ID * BLOCK + LOCAL_ID;
    if (hint - first_hint < hints && cutoffs[hint] != 0) {
        u32 block = extras[2 * (u64)hint] - first_block;
        u64 entry = (u64)block * w + extras[2 * (u64)hint + 1];
        if (block < blocks) {
            for (u32 k = 0; k < width; k++) sums[(u64)hint * width + k] ^= database[entry * stride + k];
        }
    }
}

/* `hints` pairs at the end, from row `first_row` on: what is not below, from everything; and nothing where there is no
 * cutoff. Those of row 0 begin at `first_hint`. */
KERNEL void LAUNCH_BOUNDS pir_halves(GLOBAL const u32 *cutoffs, GLOBAL u32 *sums, u32 first_hint, u32 first_row, u32 hints,
                                     u32 width, u64 apart) {
    u32 hint = GROUP_ID * BLOCK + LOCAL_ID, row = first_row + hint;
    if (hint < hints) {
        u32 valid = 0u - (u32)(cutoffs[first_hint + row] != 0);
        for (u32 k = 0; k < width; k++) {
            GLOBAL u32 *low = sums + (u64)row * width + k;
            low[apart] = (low[apart] ^ *low) & valid;
            *low &= valid;
        }
    }
}
