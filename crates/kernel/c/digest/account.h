/* The digest of a key is its Ethereum account, or with DIGEST_CREATE the contract which that creates.
 * params: what stands around the account in the message of CREATE (src/points.rs). */

/* Images are fetched where they are hashed. */
#define IMAGE_LOOP ROLLED
#define images_load(all, point) ((void)(all))
typedef u32 images;

typedef struct {
    u32 image;
} message;

/* Both halves of a message are loaded where they are hashed: nothing stays in registers across a hash. */
DEV void message_load(message *m, const images *all, const written *point, u32 image) {
    m->image = image;
    (void)all;
    (void)point;
}

DEV void message_digest(u32 *digest, const message *m, const written *point, GLOBAL const u32 *params, u32 sign,
                        u32 one) {
    u32 words[16], address[5];
    fe x, y;
    written_load(&x, point, m->image);
    written_load(&y, point, WRITTEN_Y + sign);
    UNROLL
    for (int i = 0; i < 8; i++) {
        words[i] = x.v[i];
        words[i + 8] = y.v[i];
    }
    address_account(address, words);
#if DIGEST_CREATE
    address_create(address, params[0], params[1], (u64)params[3] << 32 | params[2]);
#endif
    address_digest(digest, address);
    (void)params;
    (void)one;
}
