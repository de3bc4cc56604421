/* The point walk. */
static u32 *centres, *filter, *params, *hits, *table, lanes, steps;
static quad *scratch;

static void walk(void) {
    points_walk(centres, scratch, (quad *)table, filter, params, hits, lanes, steps);
}

int main(void) {
    u32 *head = read_words(8);
    u32 filter_words = head[2], capacity = head[3];
    lanes = head[0];
    steps = head[1];
    centres = read_words(16 * (u64)lanes);
    table = read_words((GROUP + 1) * TABLE_QUADS * 4);
    params = read_words(4);
    filter = read_words(filter_words);
    scratch = malloc((u64)lanes * (GROUP + 4) * 32);
    hits = calloc(HITS_HEADER + (u64)capacity * HIT_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
    hits[HITS_BEST] = head[4];
    launch(walk, lanes / BLOCK);
    fwrite(centres, 64, lanes, stdout);
    fwrite(hits, 4, HITS_HEADER + (u64)capacity * HIT_WORDS, stdout);
    free(centres);
    free(table);
    free(params);
    free(filter);
    free(scratch);
    free(hits);
    free(head);
    return 0;
}
