/* The score of digests, one by one, as the filter has it. */
static u32 *filter, *digests, count;

static void score(void) {
    u32 hits[HITS_HEADER] = {0};
    if (LOCAL_ID) return;
    for (u32 i = 0; i < count; i++) {
        filter_state f;
        u32 told;
        filter_load(&f, filter, hits);
        filter_test(&f, digests + 5 * i, hits, &told);
        fwrite(&told, 4, 1, stdout);
    }
}

int main(void) {
    u32 *head = read_words(2);
    count = head[1];
    filter = read_words(head[0]);
    digests = read_words(5 * count);
    launch(score, 1);
    free(head);
    free(filter);
    free(digests);
    return 0;
}
