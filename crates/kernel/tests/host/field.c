/* The field operations. */
static u32 *a, *b, *out, op, count;

static void check(void) {
    field_check(a, b, out, op, count);
}

static void bench(void) {
    field_bench(a, op, count);
}

/* Request 0: operation, elements, then both lists. Request 1: operation, times, blocks, then two elements. */
int main(void) {
    u32 *head = read_words(8);
    op = head[1];
    count = head[2];
    if (head[0] == 0) {
        a = read_words(8 * (u64)count);
        b = read_words(8 * (u64)count);
        out = calloc(count, 32);
        launch(check, (count + BLOCK - 1) / BLOCK);
        fwrite(out, 32, count, stdout);
    } else {
        u32 lanes = head[3] * BLOCK;
        u32 *start = read_words(16);
        a = calloc(16 + 8 * (u64)lanes, 4);
        for (int i = 0; i < 16; i++) a[i] = start[i];
        launch(bench, head[3]);
        fwrite(a + 16, 32, lanes, stdout);
        free(start);
    }
    free(a);
    free(b);
    free(out);
    free(head);
    return 0;
}
