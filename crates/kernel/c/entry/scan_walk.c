/* Entry point of a scan that walks: every key of a stretch once. No images and no signs: 3.5 M + 1 S a key.
 *
 * Lane l has the group of 2 GROUP + 1 keys around its centre, and neighbouring lanes neighbouring groups. Entry 0 of the
 * table, by which a step moves all centres, is lanes * (2 GROUP + 1) * G, so one step covers one stretch of keys. Points are
 * written down for scan_test.c. */

/* The next group of each lane, and its centre moved on. A lane that met its table says so, and what it wrote down is
 * nothing. lanes is a multiple of BLOCK. */
KERNEL void LAUNCH_BOUNDS scan_walk(GLOBAL u32 *centres, GLOBAL quad *scratch, TABLE_PARAM GLOBAL quad *points,
                                    GLOBAL u32 *hits, u32 lanes, u32 step) {
    LOCAL_ARRAY(quad, nodes, 4 * BLOCK);
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID;
    if (!written_group(centres, scratch + lane, search_table, points, nodes, lanes, lane, 1)) {
        u32 digest[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        scan_emit(hits, lane, step, CODE_FAULT, 0, digest, 0);
    }
}
