/* The digest of a key is its x coordinate. Images are made here: to test them costs less than to write them down and read them. */

#define IMAGE_LOOP UNROLL

typedef struct {
    fe x[3];
} images;

typedef struct {
    u32 x[8];
} message;

DEV void images_load(images *all, const written *point) {
    fe words, zero;
    fe_set(&zero, 0);
    written_load(&words, point, 0);
    UNROLL
    for (int i = 0; i < 8; i++) all->x[0].v[i] = words.v[7 - i];
    search_beta(&all->x[1]);
    fe_mul(&all->x[1], &all->x[1], &all->x[0]);
    fe_norm(&all->x[1], &all->x[1]);
    /* p - x, as x > 0, and without beta x a value from 1 to p - 1, or p added: below p as it is. */
    fe_sub(&all->x[2], &zero, &all->x[0]);
    fe_sub(&all->x[2], &all->x[2], &all->x[1]);
}

DEV void message_load(message *m, const images *all, const written *point, u32 image) {
    UNROLL
    for (int i = 0; i < 8; i++) m->x[i] = all->x[image].v[7 - i];
    (void)point;
}

DEV void message_digest(u32 *digest, const message *m, const written *point, GLOBAL const u32 *params, u32 sign,
                        u32 one) {
    UNROLL
    for (int i = 0; i < 8; i++) digest[i] = m->x[i];
    (void)point;
    (void)params;
    (void)sign;
    (void)one;
}
