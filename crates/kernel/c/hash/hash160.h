/* HASH160, RIPEMD-160 of SHA-256, of what Bitcoin hashes that way: public keys as bytes, and the script of a witness program of
 * version 0. Knows messages, not where they come from. Numbers are eight words, most significant first. */

/* hash[0..4] = RIPEMD-160 of the state of SHA-256, first byte of a word lowest. */
DEV void hash160_finish(u32 *hash, const u32 *state, u32 one) {
    u32 words[8];
    UNROLL
    for (int i = 0; i < 8; i++) words[i] = SWAP_BYTES(state[i]);
    ripemd160_32(hash, words, one);
}

/* words[0..8] = `first` (a byte) and the 32 bytes of x, with a one bit behind. */
DEV void hash160_words(u32 *words, u32 first, const u32 *x) {
    words[0] = first << 24 | x[0] >> 8;
    UNROLL
    for (int i = 1; i < 8; i++) words[i] = x[i - 1] << 24 | x[i] >> 8;
    words[8] = x[7] << 24 | 0x800000u;
}

/* words[0..15] = block n (0 or 1) of an uncompressed key: 04, x and 31 bytes of y; then the last byte of y. */
DEV void hash160_whole(u32 *words, u32 n, const u32 *x, const u32 *y) {
    u32 all[17];
    hash160_words(all, 4, x);
    hash160_words(all + 8, x[7], y);
    if (n == 1) {
        all[0] = all[16];
        UNROLL
        for (int i = 1; i < 15; i++) all[i] = 0;
        all[15] = 520; /* bits */
    }
    UNROLL
    for (int i = 0; i < 16; i++) words[i] = all[i];
}

/* words[0..15] = the script 00 14 hash, padded. */
DEV void hash160_script(u32 *words, const u32 *hash) {
    u32 script[5];
    UNROLL
    for (int i = 0; i < 5; i++) script[i] = SWAP_BYTES(hash[i]);
    words[0] = 0x140000u | script[0] >> 16;
    UNROLL
    for (int i = 1; i < 5; i++) words[i] = script[i - 1] << 16 | script[i] >> 16;
    words[5] = script[4] << 16 | 0x8000u;
    UNROLL
    for (int i = 6; i < 15; i++) words[i] = 0;
    words[15] = 176; /* bits */
}
