/* The table of the tweak, and the walk for taproot outputs. */
static u32 *centres, *filter, *hits, *table, lanes, steps, small, tasks;
static quad *scratch, *sums, *tweaks, *giants;

static void fill(void) {
    taproot_fill(tweaks, giants, small, tasks);
}

static void walk(void) {
    taproot_walk(centres, scratch, (quad *)table, filter, tweaks, sums, hits, lanes, steps);
}

int main(void) {
    u64 entries = (u64)TWEAK_WINDOWS * TWEAK_HALF;
    u32 *head = read_words(8);
    u32 filter_words = head[2], capacity = head[3];
    lanes = head[0];
    steps = head[1];
    small = head[5];
    tasks = TWEAK_WINDOWS * (TWEAK_HALF >> small);
    centres = read_words(16 * (u64)lanes);
    table = read_words((GROUP + 1) * TABLE_QUADS * 4);
    filter = read_words(filter_words);
    tweaks = read_words(16 * entries);
    giants = read_words(16 * (u64)tasks);
    scratch = malloc((u64)lanes * (GROUP + 4) * 32);
    sums = malloc((u64)lanes * (SUM_PRODUCT + 1) * 32);
    hits = calloc(HITS_HEADER + (u64)capacity * HIT_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
    hits[HITS_BEST] = head[4];
    launch(fill, (tasks + BLOCK - 1) / BLOCK);
    launch(walk, lanes / BLOCK);
    fwrite(centres, 64, lanes, stdout);
    fwrite(hits, 4, HITS_HEADER + (u64)capacity * HIT_WORDS, stdout);
    fwrite(tweaks, 64, entries, stdout);
    free(centres);
    free(table);
    free(filter);
    free(tweaks);
    free(giants);
    free(scratch);
    free(sums);
    free(hits);
    free(head);
    return 0;
}
