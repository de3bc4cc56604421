/* Puts lanes elsewhere. */
static u32 *centres, *moves, lanes, count;

static void place(void) {
    moves_place(centres, moves, lanes, count);
}

int main(void) {
    u32 *head = read_words(2);
    lanes = head[0];
    count = head[1];
    centres = read_words(CENTRE_WORDS * (u64)lanes);
    moves = read_words((CENTRE_WORDS + 1) * (u64)count);
    launch(place, (count * CENTRE_WORDS + BLOCK - 1) / BLOCK);
    fwrite(centres, 4, CENTRE_WORDS * (u64)lanes, stdout);
    free(moves);
    free(centres);
    free(head);
    return 0;
}
