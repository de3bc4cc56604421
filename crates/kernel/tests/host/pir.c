/* The programs of private retrieval. A request names the entry point, the blocks of lanes, and the numbers of buffers and
 * scalars; then come the buffers, each after its length in words, and the scalars, two words each. The answer is all
 * buffers as the kernel left them. */
static u32 *b[4];
static u64 lengths[4], s[20];

#if DRIVE_CUTOFFS
static void cutoffs(void) {
    pir_cutoffs(b[0], b[1], b[2], s[0], s[1], s[2], s[3], s[4], (u32)s[5], (u32)s[6], (u32)s[7], (u32)s[8], (u32)s[9],
                (u32)s[10]);
}
static void (*entries[])(void) = {cutoffs};
#elif DRIVE_PARITIES
static void parities(void) {
    pir_parities(b[0], b[1], b[2], b[3], s[0], s[1], s[2], s[3], s[4], (u32)s[5], (u32)s[6], (u32)s[7], (u32)s[8],
                 (u32)s[9], (u32)s[10], (u32)s[11], (u32)s[12], s[13]);
}
static void (*entries[])(void) = {parities};
#else
static void ties(void) {
    pir_ties(b[0], b[1], b[2], b[3], s[0], s[1], s[2], s[3], s[4], (u32)s[5], (u32)s[6], (u32)s[7], (u32)s[8], (u32)s[9],
             (u32)s[10]);
}
static void extras(void) {
    pir_extras(b[0], b[1], b[2], b[3], (u32)s[0], (u32)s[1], (u32)s[2], (u32)s[3], (u32)s[4], (u32)s[5], (u32)s[6]);
}
static void halves(void) {
    pir_halves(b[0], b[1], (u32)s[0], (u32)s[1], (u32)s[2], (u32)s[3], s[4]);
}
static void spread(void) {
    pir_spread(b[0], b[1], s[0], s[1], s[2], (u32)s[3], (u32)s[4], (u32)s[5]);
}
static void make_up(void) {
    pir_make_up(b[0], s[0], s[1], (u32)s[2], (u32)s[3], (u32)s[4]);
}
static void (*entries[])(void) = {ties, extras, halves, spread, make_up};
#endif

int main(void) {
    u32 *head = read_words(4);
    for (u32 i = 0; i < head[2]; i++) {
        u32 *length = read_words(1);
        lengths[i] = *length;
        b[i] = read_words(*length);
        free(length);
    }
    u32 *scalars = read_words(2 * (u64)head[3]);
    for (u32 i = 0; i < head[3]; i++) s[i] = (u64)scalars[2 * i + 1] << 32 | scalars[2 * i];
    launch(entries[head[0]], head[1]);
    for (u32 i = 0; i < head[2]; i++) {
        fwrite(b[i], 4, lengths[i], stdout);
        free(b[i]);
    }
    free(scalars);
    free(head);
    return 0;
}
