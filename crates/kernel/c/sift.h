/* Levels 1 and 2 of a SET filter in the walk: survivors of the bitmap, and which of them are candidates.
 *
 * A survivor holds the nine computed top words of one sign of an entry. At the end of a step the lanes of a block
 * share out its survivors evenly, and keep the keys within their error of an interval as candidates. */

/* The error of a computed top word is the sum of those of its three terms, in 256ths of a unit: how far the true word
 * may lie below and above, for the images by 1 and beta, and by beta^2 (src/abi.rs has the argument). */
#if FILTER_FINE
#define TERM_BELOW(m, square) ((m) == 0 ? (square) ? 554u : 257u : (m) == 1 ? (square) ? 1572u : 256u : (square) ? 1060u : 0u)
#define TERM_ABOVE(m, square) ((m) == 0 ? (square) ? 514u : 277u : (m) == 1 ? (square) ? 512u : 786u : (square) ? 0u : 530u)
#else
#define TERM_BELOW(m, square) (256u * ((m) < 2 ? (square) ? 22u : 1u : (square) ? 18u : 0u))
#define TERM_ABOVE(m, square) (256u * ((m) < 2 ? (square) ? 2u : 11u : (square) ? 0u : 9u))
#endif

/* Appends the nine keys of one sign to the block's survivors: counted past the capacity, not written past it. */
INLINE void sift_keep(GLOBAL quad *list, LOCAL u32 *count, u32 capacity, u32 lane, u32 step, u32 code, const u32 *sums) {
    u32 at = ATOMIC_ADD_LOCAL(count, 1u);
    if (at < capacity) {
        GLOBAL quad *to = list + 1 + (u64)at * SURVIVOR_QUADS;
        quad q;
        q.x = lane;
        q.y = step;
        q.z = code;
        q.w = sums[8];
        to[0] = q;
        UNROLL
        for (int i = 0; i < 2; i++) {
            q.x = sums[4 * i];
            q.y = sums[4 * i + 1];
            q.z = sums[4 * i + 2];
            q.w = sums[4 * i + 3];
            to[1 + i] = q;
        }
    }
}

/* Survivors a lane looks at side by side: each key takes four loads that wait for one another. */
#define SIFT_WAYS 4

/* Turns `count` survivors into candidates, counted past their room and not written past it. In each round every way of
 * a lane takes one key: the next of its survivor's mask, or the first of its next survivor's. */
INLINE void sift_out(GLOBAL const u32 *filter, GLOBAL quad *list, u32 count, LOCAL u32 *candidates, u32 capacity,
                     u32 room) {
    GLOBAL quad *out = list + 1 + (u64)capacity * SURVIVOR_QUADS;
    quad head[SIFT_WAYS];
    u32 next[SIFT_WAYS], mask[SIFT_WAYS], key[SIFT_WAYS], top[SIFT_WAYS], start[SIFT_WAYS], busy;
    u32 first[SIFT_WAYS], last[SIFT_WAYS], from[2 * SIFT_WAYS], to[2 * SIFT_WAYS];
    UNROLL
    for (int k = 0; k < SIFT_WAYS; k++) {
        next[k] = (u32)k * BLOCK + LOCAL_ID;
        mask[k] = 0;
        head[k].x = head[k].y = head[k].z = head[k].w = 0;
    }
    do {
        busy = 0;
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            if (mask[k] == 0 && next[k] < count) {
                head[k] = list[1 + (u64)next[k] * SURVIVOR_QUADS];
                mask[k] = head[k].z >> SURVIVOR_MASK;
                next[k] += SIFT_WAYS * BLOCK;
            }
        }
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            /* Of the survivor just taken or still held: next has gone past it. */
            u32 held = next[k] - SIFT_WAYS * BLOCK;
            key[k] = mask[k] ? 8 - (31u - LEADING_ZEROS(mask[k])) : 0;
            top[k] = head[k].w;
            if (mask[k] && key[k] < 8) top[k] = ((GLOBAL const u32 *)(list + 2 + (u64)held * SURVIVOR_QUADS))[key[k]];
        }
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            /* true > top - below and true < top + above, and words are whole. */
            u32 p = key[k] / 3, q = key[k] % 3, j = (6 - p - q) % 3;
            u32 below = TERM_BELOW(0, j == 2) + TERM_BELOW(1, p == 2) + TERM_BELOW(2, q == 2);
            u32 above = TERM_ABOVE(0, j == 2) + TERM_ABOVE(1, p == 2) + TERM_ABOVE(2, q == 2);
            first[k] = top[k] - ((below + 255) >> 8);
            last[k] = top[k] + ((above - 1) >> 8);
            start[k] = mask[k] ? filter_start(filter, first[k]) : 0;
        }
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            filter_words(filter, start[k], from + 2 * k, to + 2 * k);
            filter_words(filter, start[k] + 1, from + 2 * k + 1, to + 2 * k + 1);
        }
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            if (mask[k]) {
                u32 p = key[k] / 3, q = key[k] % 3, j = (6 - p - q) % 3, found;
                if (to[2 * k] >= first[k]) {
                    found = from[2 * k] <= last[k];
                } else if (to[2 * k + 1] >= first[k]) {
                    found = from[2 * k + 1] <= last[k];
                } else {
                    found = filter_near(filter, start[k] + 2, first[k], last[k]);
                }
                /* Where first..last goes around: the exact test decides. */
                found |= first[k] > last[k];
                mask[k] ^= 1u << (8 - key[k]);
                if (found) {
                    u32 at = ATOMIC_ADD_LOCAL(candidates, 1u);
                    if (at < room) {
                        quad candidate;
                        candidate.x = head[k].x;
                        candidate.y = head[k].y;
                        candidate.z = (head[k].z & 0x1ffffu) | (3 + q - p) % 3 << CODE_ORBIT | j << CODE_IMAGE;
                        candidate.w = top[k];
                        out[at] = candidate;
                    }
                }
            }
            busy |= mask[k] | (next[k] < count ? 1u : 0u);
        }
    } while (busy);
}
