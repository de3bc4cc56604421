/* Levels 1 and 2 of a SET filter in the walk: survivors of the bitmap, and which of their keys are candidates.
 *
 * A survivor is one sign of an entry: which of its nine keys the bitmap let through, the six computed top words they are
 * sums of, and of each of these the five bits behind it, from t^2 down to beta c (zeros where words are not fine). Few
 * lanes of a warp have one at a time while all wait, so writing it down must cost little: each lane appends to a list of
 * its own. At the end of a step the lanes go through their lists together, and keep the keys within their error of an
 * interval as candidates. */

/* The images (0, 1 or 2) of the three terms of each of the nine keys of search_nine, six bits a key. As one number, which
 * compilers leave alone: of an array they make a chain of comparisons. */
#define KEY_IMAGES(key, j, p, q) ((u64)((j) | (p) << 2 | (q) << 4) << 6 * (key))
#define ALL_IMAGES                                                                                                     \
    (KEY_IMAGES(0, 0, 0, 0) | KEY_IMAGES(1, 2, 0, 1) | KEY_IMAGES(2, 1, 0, 2) | KEY_IMAGES(3, 2, 1, 0) |               \
     KEY_IMAGES(4, 1, 1, 1) | KEY_IMAGES(5, 0, 1, 2) | KEY_IMAGES(6, 1, 2, 0) | KEY_IMAGES(7, 0, 2, 1) |               \
     KEY_IMAGES(8, 2, 2, 2))

/* On the next place of a lane that has met its table: past all places, but no loss. */
#define SIFT_CLOSED 0x80000000u

/* Writes one sign of an entry down as a survivor of a lane at its next place, and returns the place after it. */
DEV u32 sift_keep(GLOBAL quad *list, u32 next, u32 code, const u32 *tops, u32 parts) {
    GLOBAL quad *to = list + (u64)next * SURVIVOR_QUADS;
    quad q;
    q.x = tops[0];
    q.y = tops[1];
    q.z = tops[3];
    q.w = tops[4];
    to[0] = q;
    q.x = tops[6];
    q.y = tops[7];
    q.z = code;
    q.w = parts;
    to[1] = q;
    return next + BLOCK;
}

/* The image of a term, in the lowest two bits of `images`, given its words for images 0 and 1. */
DEV u32 sift_image(u32 first, u32 second, u32 images) {
    return images & 2 ? 0u - first - second : images & 1 ? second : first;
}

/* What `parts` adds to the sum of three top words, in 32nds: more than -192. */
DEV u32 sift_parts(u32 parts, u32 images) {
    return sift_image(parts >> 5 & 31, parts & 31, images) + sift_image(parts >> 15 & 31, parts >> 10 & 31, images >> 2)
           + sift_image(parts >> 25 & 31, parts >> 20 & 31, images >> 4);
}

/* No bound of a word is this far below it. */
#define SIFT_BELOW 128u

/* Survivors a lane looks at side by side: each key takes three loads that wait for one another. */
#define SIFT_WAYS 2

/* Turns the survivors of a lane in a step, from place `next` up to `end`, into candidates of its block, counted past their
 * room and not written past it. In each round every way takes one key: the next of its survivor's mask, or the first of the
 * next survivor. */
INLINE void sift_out(const set_index *set, GLOBAL const quad *list, u32 next, u32 end, GLOBAL quad *out,
                     LOCAL u32 *candidates, u32 room, u32 lane, u32 step) {
    u32 held[SIFT_WAYS], mask[SIFT_WAYS], code[SIFT_WAYS], top[SIFT_WAYS], first[SIFT_WAYS], last[SIFT_WAYS];
    u32 start[SIFT_WAYS], busy = next < end;
    quad pairs[2 * SIFT_WAYS];
    UNROLL
    for (int k = 0; k < SIFT_WAYS; k++) {
        held[k] = next;
        mask[k] = 0;
    }
    while (lanes_any(busy)) {
        u32 found[SIFT_WAYS], total = 0;
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            u32 fresh = mask[k] == 0 && next < end, key, images, behind;
            quad a, b;
            held[k] = fresh ? next : held[k];
            next += fresh ? BLOCK : 0;
            a = list[(u64)held[k] * SURVIVOR_QUADS];
            b = list[(u64)held[k] * SURVIVOR_QUADS + 1];
            mask[k] = fresh ? b.z >> SURVIVOR_MASK : mask[k];
            /* Of an empty mask: any. */
            key = LEADING_ZEROS(mask[k] | 1u) - 23;
            images = (u32)(ALL_IMAGES >> 6 * key);
            top[k] = sift_image(a.x, a.y, images) + sift_image(a.z, a.w, images >> 2) + sift_image(b.x, b.y, images >> 4);
            code[k] = (b.z & ~(~0u << CANDIDATE_KEY)) | key << CANDIDATE_KEY;
            /* Keys 0, 4 and 8 have all images equal, the others one by beta^2 (src/abi.rs has the bounds). Whole words
             * are counted from a place below all. */
            behind = 32 * SIFT_BELOW + sift_parts(b.w, images);
            first[k] = top[k] - SIFT_BELOW + ((behind - (key == 8 ? BELOW_ALL : key & 3 ? BELOW_ONE : BELOW_NONE)) >> 5);
            last[k] = top[k] - SIFT_BELOW + ((behind + (key == 8 ? ABOVE_ALL : key & 3 ? ABOVE_ONE : ABOVE_NONE)) >> 5);
            start[k] = set_start(set, first[k]);
        }
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            GLOBAL const quad *at = set_pairs(set, start[k]);
            pairs[2 * k] = at[0];
            pairs[2 * k + 1] = at[1];
        }
        busy = next < end;
        UNROLL
        for (int k = 0; k < SIFT_WAYS; k++) {
            quad a = pairs[2 * k], b = pairs[2 * k + 1];
            found[k] = set_meets(&a, first[k], last[k]) | set_meets(&b, first[k], last[k]);
            /* These four end below it. */
            if (b.w < first[k]) found[k] = set_scan(set, start[k] + 4, first[k], last[k]);
            /* Where first..last goes around the exact test decides. */
            found[k] = (found[k] | (u32)(first[k] > last[k])) & (u32)(mask[k] != 0);
            total += found[k];
            /* The highest bit goes: the key just looked at. */
            mask[k] &= ~(0x80000000u >> LEADING_ZEROS(mask[k] | 1u));
            busy |= mask[k];
        }
        if (total) {
            u32 at = ATOMIC_ADD_LOCAL(candidates, total);
            UNROLL
            for (int k = 0; k < SIFT_WAYS; k++) {
                if (found[k] && at < room) {
                    quad candidate;
                    candidate.x = lane;
                    candidate.y = step;
                    candidate.z = code[k];
                    candidate.w = top[k];
                    out[at] = candidate;
                }
                at += found[k];
            }
        }
    }
}
