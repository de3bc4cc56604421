/* The search for salts. */
static u32 *filter, *params, *hits, lanes, steps;
static u64 first, last;

static void walk(void) {
    salts_walk(params, filter, hits, first, last, lanes, steps);
}

int main(void) {
    u32 *head = read_words(12);
    u32 filter_words = head[2], capacity = head[3], params_words = head[5];
    lanes = head[0];
    steps = head[1];
    first = (u64)head[7] << 32 | head[6];
    last = (u64)head[9] << 32 | head[8];
    params = read_words(params_words);
    filter = read_words(filter_words);
    hits = calloc(HITS_HEADER + (u64)capacity * HIT_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
    hits[HITS_BEST] = head[4];
    launch(walk, lanes / BLOCK);
    fwrite(hits, 4, HITS_HEADER + (u64)capacity * HIT_WORDS, stdout);
    free(params);
    free(filter);
    free(hits);
    free(head);
    return 0;
}
