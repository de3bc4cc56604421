/* Entry point of a search that walks: each lane its own keys, which points_test.c makes digests of. */

/* The next group of each lane, and its centre moved on. A lane that met its table says so once, and has no points in this step
 * and the later ones of a launch. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS points_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL quad *points,
                                      GLOBAL u32 *hits, u32 lanes, u32 step) {
    LOCAL_ARRAY(quad, nodes, 4 * BLOCK);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID, was = 1;
    if (step > 0) {
        written centre = written_at(points, lanes, lane, 0);
        was = written_is_there(&centre);
    }
    if (!written_group(centres, scratch + lane, search_table, points, nodes, lanes, lane, was)) {
        if (was) search_emit(hits, lane, step, CODE_FAULT, 0);
        written_clear(points, lanes, lane);
    }
}
