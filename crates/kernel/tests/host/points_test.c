/* The test of a search: digests of each step's points. */
static u32 *filter, *params, *hits, lanes, step, parts;
static quad *points;

static void test(void) {
    points_test(points, filter, params, hits, lanes, step, parts);
}

int main(void) {
    u32 *head = read_words(8);
    u32 steps = head[1], filter_words = head[2], capacity = head[3];
    lanes = head[0];
    parts = head[5];
    params = read_words(4);
    filter = read_words(filter_words);
    hits = calloc(HITS_HEADER + (u64)capacity * HIT_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
    hits[HITS_BEST] = head[4];
    for (step = 0; step < steps; step++) {
        points = read_words(4 * WRITTEN_LAST(lanes));
        launch(test, lanes * parts / BLOCK);
        free(points);
    }
    fwrite(hits, 4, HITS_HEADER + (u64)capacity * HIT_WORDS, stdout);
    free(params);
    free(filter);
    free(hits);
    free(head);
    return 0;
}
