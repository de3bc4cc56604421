/* A walk that writes points down, WALK: each step's points, one after the other. Its records have WALK_WORDS words. */
static u32 *centres, *hits, *table, lanes, step;
static quad *scratch, *points;

static void walk(void) {
    WALK(centres, scratch, (quad *)table, points, hits, lanes, step);
}

int main(void) {
    u32 *head = read_words(4);
    u32 steps = head[1], capacity = head[2];
    u64 size;
    lanes = head[0];
    centres = read_words(16 * (u64)lanes);
    table = read_words((GROUP + 1) * TABLE_QUADS * 4);
    scratch = malloc((u64)lanes * (GROUP + 4) * 32);
    hits = calloc(HITS_HEADER + (u64)capacity * WALK_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
    size = 16 * WRITTEN_LAST(lanes) + (WRITE_Y == 1 ? 4 * (u64)WRITTEN_POINTS * lanes : 0);
    points = aligned_alloc(16, (size + 15) / 16 * 16);
    for (step = 0; step < steps; step++) {
        launch(walk, lanes / BLOCK);
        fwrite(points, 1, size, stdout);
    }
    fwrite(centres, 64, lanes, stdout);
    fwrite(hits, 4, HITS_HEADER + (u64)capacity * WALK_WORDS, stdout);
    free(centres);
    free(table);
    free(scratch);
    free(points);
    free(hits);
    free(head);
    return 0;
}
