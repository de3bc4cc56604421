/* Entry point for targets that hash points, or test all of x: 6 keys a point, or 3 without signs.
 *
 * digest/ says what becomes of a point: `message` is what both keys of an image share, message_load fetches it, and
 * message_digest makes the digest of one. POINT_SIGNS is how many those are: 2 where y or its parity matters. Where only
 * the parity does, y is not computed; the key is then the one whose y is even or odd, and CODE_NEGATE says odd.
 * There is one copy of the hash in the code, which the centre and both signs come to in turn. */

/* `steps` groups of each lane, from the centres on; centres are moved on. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS points_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL const u32 *filter,
                                      GLOBAL const u32 *params, GLOBAL u32 *hits, u32 lanes, u32 steps) {
    LOCAL_ARRAY(quad, block, MESSAGE_QUADS * BLOCK);
    LOCAL quad *spare = block + LOCAL_ID;
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, alive = 1, one = OPAQUE_ONE;
    filter_state state;

    scratch += lane;
    filter_load(&state, filter, hits);
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        u32 was = alive;
        /* The inversion's tree lies where the points will: 4 quads a lane, and a point takes 6 or more. */
        alive = points_prepare(centres, scratch, search_table, block, lanes, lane, alive);
        BARRIER();
        if (was && !alive) search_emit(hits, lane, step, CODE_FAULT, 0);
        ROLLED
        for (u32 n = 0; n <= 2 * GROUP; n++) {
            fe x, y;
            points_at(&x, &y, scratch, search_table, lanes, n);
            points_images(spare, &x, &y);
            ROLLED
            for (u32 image = 0; image < 3; image++) {
                message shared;
                message_load(&shared, spare, image);
                ROLLED
                for (u32 negate = 0; negate < POINT_SIGNS; negate++) {
                    u32 digest[DIGEST_WORDS], told;
                    message_digest(digest, &shared, spare, params, negate, one);
                    if (alive && filter_test(&state, digest, hits, &told)) {
                        u32 code = points_code(n) | image << CODE_IMAGE | negate << CODE_NEGATE;
                        search_emit(hits, lane, step, code, told);
                    }
                }
            }
        }
    }
}
