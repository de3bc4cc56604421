/* The test of a scan, or with lanes 0 the filter alone: as many digests as `steps` says, of two words each. */
static u32 *filter, *hits, lanes, step, parts;
static quad *points;

static void test(void) {
    scan_test(points, filter, hits, lanes, step, parts);
}

static void test_filter(u32 count) {
    u32 *digests = read_words(2 * (u64)count), *passed = calloc(count, 4), told;
    filter_state state;
    filter_load(&state, filter, hits);
    for (u32 i = 0; i < count; i++) passed[i] = filter_test(&state, digests + 2 * i, hits, &told);
    fwrite(passed, 4, count, stdout);
    free(digests);
    free(passed);
}

int main(void) {
    u32 *head = read_words(8);
    u32 steps = head[1], filter_words = head[2], capacity = head[3];
    lanes = head[0];
    parts = head[4];
    filter = read_words(filter_words);
    hits = calloc(HITS_HEADER + (u64)capacity * SCAN_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
    if (lanes == 0) {
        test_filter(steps);
    } else {
        for (step = 0; step < steps; step++) {
            points = read_words(4 * WRITTEN_LAST(lanes) + (WRITE_Y == 2 ? 0 : (u64)WRITTEN_POINTS * lanes));
            launch(test, lanes * parts / BLOCK);
            free(points);
        }
        fwrite(hits, 4, HITS_HEADER + (u64)capacity * SCAN_WORDS, stdout);
    }
    free(filter);
    free(hits);
    free(head);
    return 0;
}
