/* The orbit walk. */
static u32 *centres, *filter, *hits, *table, lanes, steps;
static quad *scratch;

#if FILTER_SET
static quad *points, *centre_log, *lists;
static u32 list_capacity, list_room;

static void walk(void) {
    search_walk(centres, scratch, (quad *)table, filter, hits, lanes, steps, centre_log, lists, list_capacity, list_room);
}

static void settle(void) {
    search_settle(scratch, points, filter, hits, centre_log, lists, list_capacity, list_room, lanes, steps);
}
#else
static void walk(void) {
    search_walk(centres, scratch, (quad *)table, filter, hits, lanes, steps);
}
#endif

int main(void) {
    u32 *head = read_words(8);
    u32 filter_words = head[3], capacity = head[4];
    lanes = head[1];
    steps = head[2];
    centres = read_words(16 * (u64)lanes);
    table = read_words((GROUP + 1) * TABLE_WORDS);
    filter = read_words(filter_words);
    scratch = malloc((u64)lanes * GROUP * 32);
    hits = calloc(HITS_HEADER + (u64)capacity * HIT_WORDS, 4);
    hits[HITS_CAPACITY] = capacity;
#if FILTER_SET
    list_capacity = head[5];
    list_room = head[6];
    points = read_words(GROUP * POINT_QUADS * 4);
    centre_log = malloc((u64)steps * lanes * LOG_QUADS * sizeof(quad));
    lists = malloc(lanes / BLOCK * ((u64)list_capacity * SURVIVOR_QUADS + 1 + list_room) * sizeof(quad));
    launch(walk, lanes / BLOCK);
    launch(settle, lanes / BLOCK);
    free(points);
    free(centre_log);
    free(lists);
#else
    launch(walk, lanes / BLOCK);
#endif
    fwrite(centres, 64, lanes, stdout);
    fwrite(hits, 4, HITS_HEADER + (u64)capacity * HIT_WORDS, stdout);
    free(centres);
    free(table);
    free(filter);
    free(scratch);
    free(hits);
    free(head);
    return 0;
}
