/* Entry point of a search that tests: 6 keys of each point, or 3 without signs.
 *
 * digest/ says what becomes of a point: `images` is what all its keys share, `message` what both keys of an image do,
 * images_load and message_load fetch them, and message_digest makes the digest of one key. POINT_SIGNS is how many those are: 2 where y or its parity matters. Where only
 * the parity does, y was not computed; the key is then the one whose y is even or odd, and CODE_NEGATE says odd.
 * There is one copy of the hash in the code, to which all images and signs come in turn. */

/* The points of a step, `parts` threads a lane: thread t has the points n of lane t mod lanes with n mod parts = t / lanes. */
KERNEL void LAUNCH_BOUNDS points_test(GLOBAL const quad *points, GLOBAL const u32 *filter, GLOBAL const u32 *params,
                                      GLOBAL u32 *hits, u32 lanes, u32 step, u32 parts) {
    u32 thread = GROUP_ID * BLOCK + LOCAL_ID, one = OPAQUE_ONE;
    u32 lane = thread % lanes;
    filter_state state;

    filter_load(&state, filter, hits);
    ROLLED
    for (u32 n = thread / lanes; n < WRITTEN_POINTS; n += parts) {
        written point = written_at(points, lanes, lane, n);
        images all;
        if (!written_is_there(&point)) continue;
        images_load(&all, &point);
        IMAGE_LOOP
        for (u32 image = 0; image < 3; image++) {
            message shared;
            message_load(&shared, &all, &point, image);
            ROLLED
            for (u32 negate = 0; negate < POINT_SIGNS; negate++) {
                u32 digest[DIGEST_WORDS], told;
                message_digest(digest, &shared, &point, params, negate, one);
                if (filter_test(&state, digest, hits, &told)) {
                    u32 code = points_code(n) | image << CODE_IMAGE | negate << CODE_NEGATE;
                    search_emit(hits, lane, step, code, told);
                }
            }
        }
    }
}
