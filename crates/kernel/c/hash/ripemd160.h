/* RIPEMD-160 (Dobbertin, Bosselaers, Preneel, 1996) of 32-byte messages. Knows words only.
 *
 * A step is three instructions of the logic pipe: the function, the turn of one word by ten, and the turn of the sum, which
 * takes in an addition. The other additions go the multiplier's way (u32_sum). */

DEV u32 ripemd160_rotl(u32 v, u32 n) {
    return v << n | v >> (32 - n);
}

/* Which word a step takes, and by how much it turns: sixteen numbers below 16 a round, the first one lowest, five
 * rounds of the left line, then of the right one. Constant once loops are unrolled. */
DEV u32 ripemd160_word(int line, int step) {
    const u64 words[10] = {
        U64C(0xfedcba9876543210), U64C(0x8be2590c3f6a1d47), U64C(0xc5bd607218f94ea3), U64C(0x265ef73d4c80ab91),
        U64C(0xdf6b831ea2c79504), U64C(0xc3a18f6d4b2907e5), U64C(0x2194c8fea5d073b6), U64C(0xd40a2c8b96e7315f),
        U64C(0xea79d2c50fb31468), U64C(0xb930ed2678514afc),
    };
    return (u32)(words[5 * line + step / 16] >> 4 * (step % 16)) & 15;
}

DEV u32 ripemd160_turn(int line, int step) {
    const u64 turns[10] = {
        U64C(0x8976fedb9785cfeb), U64C(0xcd7b9fc7f79bd867), U64C(0x57c56d8efd9e76db), U64C(0xc56865e989fefecb),
        U64C(0x658bedc5cd86b5f9), U64C(0x6ceeb8775ffdb998), U64C(0xbdf67c77b98c7fd9), U64C(0x57dde5dce668bf79),
        U64C(0x8f5c9c96e6eeb85f), U64C(0xbbdf56d86e5c9c58),
    };
    return (u32)(turns[5 * line + step / 16] >> 4 * (step % 16)) & 15;
}

/* The constant of a step: the integer part of a power of two times the root of a small prime, or zero. */
DEV u32 ripemd160_constant(int line, int step) {
    const u32 constants[10] = {
        0,           0x5a827999u, 0x6ed9eba1u, 0x8f1bbcdcu, 0xa953fd4eu,
        0x50a28be6u, 0x5c4dd124u, 0x6d703ef3u, 0x7a6d76e9u, 0,
    };
    return constants[5 * line + step / 16];
}

/* The five functions, which the right line takes in reverse. */
DEV u32 ripemd160_mix(int which, u32 x, u32 y, u32 z) {
    u32 mixed = x ^ y ^ z;
    if (which == 1) mixed = (x & y) | (~x & z);
    if (which == 2) mixed = (x | ~y) ^ z;
    if (which == 3) mixed = (x & z) | (y & ~z);
    if (which == 4) mixed = x ^ (y | ~z);
    return mixed;
}

/* Eighty steps of a line from v[0..4], which ends in order. */
DEV void ripemd160_line(u32 *v, int line, const u32 *message, u32 one) {
    UNROLL
    for (int i = 0; i < 80; i++) {
        /* Instead of moving five words step by step, the first is found at v[-i], the next behind it, and so on. */
        int a = (80 - i) % 5, b = (81 - i) % 5, c = (82 - i) % 5, d = (83 - i) % 5, e = (84 - i) % 5;
        int round = line == 0 ? i / 16 : 4 - i / 16;
        u32 sum = v[a], known = ripemd160_constant(line, i);
        int word = (int)ripemd160_word(line, i);
        /* The padding's words are constants. */
        if (word < 8) {
            sum = u32_sum(sum, message[word], one);
        } else {
            known += message[word];
        }
        if (known != 0) sum = u32_sum(sum, known, one);
        sum = u32_sum(ripemd160_mix(round, v[b], v[c], v[d]), sum, one);
        v[a] = ripemd160_rotl(sum, ripemd160_turn(line, i)) + v[e];
        v[c] = ripemd160_rotl(v[c], 10);
    }
}

/* hash[0..4] = the hash of a message of 32 bytes, first byte of a word lowest, both in the message and the hash. */
DEV void ripemd160_32(u32 *hash, const u32 *message, u32 one) {
    u32 left[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u}, right[5], start[5], block[16];
    UNROLL
    for (int i = 0; i < 16; i++) block[i] = i < 8 ? message[i] : 0;
    block[8] = 0x80;
    block[14] = 256; /* bits */
    UNROLL
    for (int i = 0; i < 5; i++) start[i] = right[i] = left[i];
    ripemd160_line(left, 0, block, one);
    ripemd160_line(right, 1, block, one);
    UNROLL
    for (int i = 0; i < 5; i++) hash[i] = u32_sum(u32_sum(left[(i + 2) % 5], start[(i + 1) % 5], one), right[(i + 3) % 5], one);
}
