/* The digest of a key is RIPEMD-160 of SHA-256 of it as bytes: compressed, where `sign` is the parity of y, which is not
 * known and need not be; or with DIGEST_WHOLE uncompressed. With DIGEST_SCRIPT it is the same hash of the script
 * 00 14 hash160(compressed key), a witness program of version 0. */

typedef struct {
#if DIGEST_WHOLE
    u32 image;
#else
    u32 words[9]; /* 2, x and the padding's first byte */
#endif
} message;

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

DEV void message_load(message *m, LOCAL const quad *spare, u32 image) {
#if DIGEST_WHOLE
    m->image = image;
    (void)spare;
#else
    fe x;
    fe_load_local(&x, spare, image, BLOCK);
    hash160_words(m->words, 2, x.v);
#endif
}

#if DIGEST_WHOLE

/* Two blocks by one copy of the rounds: 04, x and 31 bytes of y; then the last byte of y. */
DEV void hash160_digest(u32 *hash, const message *m, LOCAL const quad *spare, u32 sign, u32 one) {
    u32 state[8];
    sha256_start(state);
    ROLLED
    for (u32 n = 0; n < 2; n++) {
        u32 words[17];
        fe x, y;
        fe_load_local(&x, spare, m->image, BLOCK);
        fe_load_local(&y, spare, MESSAGE_Y + sign, BLOCK);
        hash160_words(words, 4, x.v);
        hash160_words(words + 8, x.v[7], y.v);
        if (n == 1) {
            words[0] = words[16];
            UNROLL
            for (int i = 1; i < 15; i++) words[i] = 0;
            words[15] = 520; /* bits */
        }
        sha256_block(state, words, one);
    }
    hash160_finish(hash, state, one);
}

#else

DEV void hash160_digest(u32 *hash, const message *m, LOCAL const quad *spare, u32 sign, u32 one) {
    u32 words[16], state[8];
    UNROLL
    for (int i = 0; i < 16; i++) words[i] = i < 9 ? m->words[i] : 0;
    words[0] |= sign << 24;
    words[15] = 264; /* bits */
#if DIGEST_SCRIPT
    /* One copy of both hashes for both messages. */
    ROLLED
    for (u32 n = 0; n < 2; n++) {
        if (n == 1) {
            u32 script[8];
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
        sha256_start(state);
        sha256_block(state, words, one);
        hash160_finish(hash, state, one);
    }
#else
    sha256_start(state);
    sha256_block(state, words, one);
    hash160_finish(hash, state, one);
#endif
    (void)spare;
}

#endif

DEV void message_digest(u32 *digest, const message *m, LOCAL const quad *spare, GLOBAL const u32 *params, u32 sign,
                        u32 one) {
    u32 hash[5];
    hash160_digest(hash, m, spare, sign, one);
    UNROLL
    for (int i = 0; i < 5; i++) digest[i] = SWAP_BYTES(hash[i]);
    (void)params;
}
