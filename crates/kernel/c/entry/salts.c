/* Entry point of the search for salts: CREATE2 and CREATE3 addresses, no curve.
 *
 * A salt is 32 bytes, some of them free. A counter stands in up to eight free bytes, least significant byte in the
 * last of them; a lane takes 256 consecutive counters at a time, which differ in that byte alone. It lies
 * at SALT_BYTE of the first message, so all of the first round before chi is done once, and each salt changes
 * 11 lanes of it.
 *
 * Stages: keccak(before, salt, after) takes the salt's place (SALT_GUARD), the CREATE2 address, and the contract which
 * that address creates at nonce 1 (SALT_CREATE).
 *
 * params, in words: 34 of the first message, with its padding and zeros where the counter stands; how many
 * bytes the counter has; where in the message byte k of it stands, 8 words; one spare; and with
 * SALT_GUARD 22 words of the CREATE2 message with zeros for the salt. src/salts.rs writes it. */

#define SALT_COUNT 34
#define SALT_PLACES 35
#define SALT_SECOND 44
#define SALT_LANE (SALT_BYTE / 8)
#define SALT_SHIFT (SALT_BYTE % 8 * 8)

/* b = the state before the first chi for counters 256 * number and on; kept[] holds it for this lane. */
DEV void salts_prepare(LOCAL u64 *kept, GLOBAL const u32 *params, u64 number) {
    u64 a[25], b[25];
    u32 bytes = params[SALT_COUNT];
    UNROLL
    for (int i = 0; i < 17; i++) kept[i * BLOCK] = (u64)params[2 * i + 1] << 32 | params[2 * i];
    ROLLED
    for (u32 k = 1; k < bytes; k++) {
        u32 at = params[SALT_PLACES + k];
        kept[at / 8 * BLOCK] |= (number >> 8 * (k - 1) & 255) << at % 8 * 8;
    }
    UNROLL
    for (int i = 0; i < 25; i++) a[i] = i < 17 ? kept[i * BLOCK] : 0;
    keccak_linear(b, a);
    UNROLL
    for (int i = 0; i < 25; i++) kept[i * BLOCK] = b[i];
}

/* The digest of salt `low` of the 256. */
DEV void salts_digest(u32 *digest, LOCAL const u64 *kept, GLOBAL const u32 *params, u32 low) {
    u64 a[25], b[25], hash[4];
    u32 address[5];
    UNROLL
    for (int i = 0; i < 25; i++) b[i] = kept[i * BLOCK];
    keccak_vary(b, SALT_LANE, (u64)low << SALT_SHIFT);
    keccak_chi(a, b, U64C(1));
    keccak_finish(hash, a);
#if SALT_GUARD
    address_create2(address, params + SALT_SECOND, hash);
#else
    address_take(address, hash);
#endif
#if SALT_CREATE
    /* rlp: a list of 22 bytes, a string of 20, the number 1; then the padding's first byte. */
    address_create(address, 0x94d6u, 0x01010000u, 0);
#endif
    address_digest(digest, address);
    (void)params;
}

/* Counters first..last, as far as `steps` steps reach. Lane l takes block first / 256 + l + step * lanes of 256. */
KERNEL void LAUNCH_BOUNDS salts_walk(GLOBAL const u32 *params, GLOBAL const u32 *filter, GLOBAL u32 *hits, u64 first,
                                     u64 last, u32 lanes, u32 steps) {
    LOCAL_ARRAY(u64, block, 25 * BLOCK);
    LOCAL u64 *kept = block + LOCAL_ID;
    u32 lane = GROUP_ID * BLOCK + LOCAL_ID;
    filter_state state;

    filter_load(&state, filter, hits);
    ROLLED
    for (u32 step = 0; step < steps; step++) {
        u64 number = (first >> 8) + (u64)step * lanes + lane;
        u32 from = number == first >> 8 ? (u32)first & 255 : 0;
        u32 to = number == last >> 8 ? (u32)last & 255 : 255;
        if (number > last >> 8) break;
        salts_prepare(kept, params, number);
        ROLLED
        for (u32 low = from; low <= to; low++) {
            u32 digest[DIGEST_WORDS], told;
            salts_digest(digest, kept, params, low);
            if (filter_test(&state, digest, hits, &told)) search_emit(hits, lane, step, low, told);
        }
    }
}
