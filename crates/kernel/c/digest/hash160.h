/* The digest of a key is RIPEMD-160 of SHA-256 of it as bytes: compressed, where `sign` is the parity of y, which is not
 * known and need not be; or with DIGEST_WHOLE uncompressed. With DIGEST_SCRIPT it is the same hash of the script
 * 00 14 hash160(compressed key), a witness program of version 0. */

/* Images are fetched where they are hashed. */
#define IMAGE_LOOP ROLLED
#define images_load(all, point) ((void)(all))
typedef u32 images;

typedef struct {
#if DIGEST_WHOLE
    u32 image;
#else
    u32 words[9]; /* 2, x and the padding's first byte */
#endif
} message;

DEV void message_load(message *m, const images *all, const written *point, u32 image) {
#if DIGEST_WHOLE
    m->image = image;
    (void)point;
#else
    fe x;
    written_load(&x, point, image);
    hash160_words(m->words, 2, x.v);
#endif
    (void)all;
}

#if DIGEST_WHOLE

/* Two blocks by one copy of the rounds: 04, x and 31 bytes of y; then the last byte of y. */
DEV void hash160_digest(u32 *hash, const message *m, const written *point, u32 sign, u32 one) {
    u32 state[8];
    sha256_start(state);
    ROLLED
    for (u32 n = 0; n < 2; n++) {
        u32 words[16];
        fe x, y;
        written_load(&x, point, m->image);
        written_load(&y, point, WRITTEN_Y + sign);
        hash160_whole(words, n, x.v, y.v);
        sha256_block(state, words, one);
    }
    hash160_finish(hash, state, one);
}

#else

DEV void hash160_digest(u32 *hash, const message *m, const written *point, u32 sign, u32 one) {
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
    (void)point;
}

#endif

DEV void message_digest(u32 *digest, const message *m, const written *point, GLOBAL const u32 *params, u32 sign,
                        u32 one) {
    u32 hash[5];
    hash160_digest(hash, m, point, sign, one);
    UNROLL
    for (int i = 0; i < 5; i++) digest[i] = SWAP_BYTES(hash[i]);
    (void)params;
}
