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
        u32 words[16];
        fe x, y;
        fe_load_local(&x, spare, m->image, BLOCK);
        fe_load_local(&y, spare, MESSAGE_Y + sign, BLOCK);
        hash160_whole(words, n, x.v, y.v);
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
        if (n == 1) hash160_script(words, hash);
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
