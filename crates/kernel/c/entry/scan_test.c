/* Entry point of a scan that tests: the digests of the points of a step, each asked of the filter.
 *
 * SCAN_X, SCAN_UNCOMPRESSED, SCAN_COMPRESSED, SCAN_SCRIPT and SCAN_ACCOUNT say which. Those of Bitcoin come from one copy of
 * SHA-256 and RIPEMD-160 in the code, to which all their messages come in turn. With one message alone nothing is a loop, and
 * what is constant in it folds. */

/* Messages of Bitcoin have the numbers of their forms, and the first block of an uncompressed key has 0. */
#define MESSAGE_START 0
#define MESSAGE_FIRST (SCAN_UNCOMPRESSED ? MESSAGE_START : FORM_COMPRESSED)
#define MESSAGE_LAST (SCAN_SCRIPT ? FORM_SCRIPT : SCAN_COMPRESSED ? FORM_COMPRESSED : FORM_UNCOMPRESSED)

/* A point in memory, and the last word of its y where that lies by itself. */
typedef struct {
    written at;
    u32 last;
} scan_point;

/* Where it is, for records. */
typedef struct {
    GLOBAL u32 *hits;
    u32 lane, step, code;
} scan_place;

/* Coordinate 0 (x) or 1 (y), most significant word first. */
DEV void scan_load(fe *r, const scan_point *point, u32 coordinate) {
    written_load(r, &point->at, coordinate);
}

DEV void scan_digest(filter_state *state, const scan_place *at, u32 form, const u32 *digest, u32 words) {
    u32 told;
    if (filter_test(state, digest, at->hits, &told)) {
        scan_emit(at->hits, at->lane, at->step, at->code, form, digest, words);
    }
}

#if SCAN_UNCOMPRESSED || SCAN_COMPRESSED || SCAN_SCRIPT

/* words[0..15] = a block to be hashed; of a script it is made from the hash before. */
DEV void scan_message(u32 *words, u32 message, const u32 *hash, const scan_point *point) {
    fe x;
    u32 last = point->last;
#if SCAN_SCRIPT
    if (message == FORM_SCRIPT) {
        hash160_script(words, hash);
        return;
    }
#endif
    scan_load(&x, point, 0);
#if WRITE_Y == 2
    {
        fe y;
        scan_load(&y, point, 1);
        last = y.v[7];
#if SCAN_UNCOMPRESSED
        if (message <= FORM_UNCOMPRESSED) {
            hash160_whole(words, message, x.v, y.v);
            return;
        }
#endif
    }
#endif
    hash160_words(words, 2 | (last & 1), x.v);
    UNROLL
    for (int i = 9; i < 15; i++) words[i] = 0;
    words[15] = 264; /* bits */
    (void)hash;
    (void)message;
}

/* Writes a record of a key whose SHA-256 ended in `chain`. The top of a hash is known some steps before the rest of it, so the
 * rest is computed here, where few keys come. */
COLD void scan_emit_hash(const scan_place *at, u32 form, const u32 *chain, u32 one) {
    u32 hash[5], digest[5];
    hash160_finish(hash, chain, one);
    UNROLL
    for (int i = 0; i < 5; i++) digest[i] = SWAP_BYTES(hash[i]);
    scan_emit(at->hits, at->lane, at->step, at->code, form, digest, 5);
}

DEV void scan_hashes(filter_state *state, const scan_place *at, const scan_point *point, u32 one) {
    u32 chain[8], hash[5] = {0, 0, 0, 0, 0};
    sha256_start(chain);
    ROLLED
    for (u32 message = MESSAGE_FIRST; message <= MESSAGE_LAST; message++) {
        u32 words[16], top[2], told;
        scan_message(words, message, hash, point);
        if (message != FORM_UNCOMPRESSED) sha256_start(chain);
        sha256_block(chain, words, one);
        if (message == MESSAGE_START) continue;
        hash160_finish(hash, chain, one);
#if !SCAN_COMPRESSED
        if (message == FORM_COMPRESSED) continue;
#endif
        top[0] = SWAP_BYTES(hash[0]);
        top[1] = SWAP_BYTES(hash[1]);
        if (filter_test(state, top, at->hits, &told)) {
            scan_place copy = *at;
            u32 end[8];
            UNROLL
            for (int i = 0; i < 8; i++) end[i] = chain[i];
            scan_emit_hash(&copy, message, end, one);
        }
    }
}

#endif

/* All digests of a point. */
DEV void scan_digests(filter_state *state, const scan_place *at, const scan_point *point, u32 one) {
#if SCAN_X
    {
        fe x;
        scan_load(&x, point, 0);
        scan_digest(state, at, FORM_X, x.v, 8);
    }
#endif
#if SCAN_UNCOMPRESSED || SCAN_COMPRESSED || SCAN_SCRIPT
    scan_hashes(state, at, point, one);
#endif
#if SCAN_ACCOUNT
    {
        u32 words[16], address[5], digest[5];
        fe x, y;
        scan_load(&x, point, 0);
        scan_load(&y, point, 1);
        UNROLL
        for (int i = 0; i < 8; i++) {
            words[i] = SWAP_BYTES(x.v[i]);
            words[i + 8] = SWAP_BYTES(y.v[i]);
        }
        address_account(address, words);
        address_digest(digest, address);
        scan_digest(state, at, FORM_ACCOUNT, digest, 5);
    }
#endif
    (void)one;
}

/* The points of a step, `parts` threads a lane: thread t has the points n of lane t mod lanes with n mod parts = t / lanes. */
KERNEL void LAUNCH_BOUNDS scan_test(GLOBAL const quad *points, GLOBAL const u32 *filter, GLOBAL u32 *hits, u32 lanes,
                                    u32 step, u32 parts) {
    u32 thread = GROUP_ID * BLOCK + LOCAL_ID, one = OPAQUE_ONE;
    filter_state state;
    scan_place at;

    at.hits = hits;
    at.lane = thread % lanes;
    at.step = step;
    filter_load(&state, filter, hits);
    ROLLED
    for (u32 n = thread / lanes; n < WRITTEN_POINTS; n += parts) {
        scan_point point;
        point.at = written_at(points, lanes, at.lane, n);
#if WRITE_Y == 2
        point.last = 0;
#else
        point.last = ((GLOBAL const u32 *)(points + WRITTEN_LAST(lanes)))[(u64)n * lanes + at.lane];
#endif
        at.code = points_code(n);
        scan_digests(&state, &at, &point, one);
    }
}
