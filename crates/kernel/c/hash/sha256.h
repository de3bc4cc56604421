/* SHA-256 (FIPS 180-4) of messages whose blocks the caller pads. Knows words only.
 *
 * A round is 10 instructions of the logic pipe (six rotations, two of which add as well, and four of three inputs), and a
 * word of the schedule eight; what else is added, eight times a round, goes the multiplier's way (u32_sum), which is
 * idle otherwise. */

DEV u32 sha256_rotr(u32 v, u32 n) {
    return v >> n | v << (32 - n);
}

CONSTANT_DATA(u32, sha256_constants, 64) = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
};

DEV void sha256_start(u32 *state) {
    state[0] = 0x6a09e667u;
    state[1] = 0xbb67ae85u;
    state[2] = 0x3c6ef372u;
    state[3] = 0xa54ff53au;
    state[4] = 0x510e527fu;
    state[5] = 0x9b05688cu;
    state[6] = 0x1f83d9abu;
    state[7] = 0x5be0cd19u;
}

/* Word i + 16 of the schedule takes the place of word i. The sum begins with the words furthest back. */
DEV void sha256_expand(u32 *w, int i, u32 one) {
    u32 x = w[(i + 1) & 15], y = w[(i + 14) & 15];
    u32 sum = u32_sum(sha256_rotr(x, 7) ^ sha256_rotr(x, 18) ^ x >> 3, w[i], one);
    sum = u32_sum(sum, w[(i + 9) & 15], one);
    w[i] = u32_sum(sha256_rotr(y, 17) ^ sha256_rotr(y, 19) ^ y >> 10, sum, one);
}

/* Round i with the sum of its word and its constant. Instead of moving eight words round by round, a is found at s[-i],
 * b behind it, and so on. The last of three rotations turns their sum, where one instruction turns and adds. */
DEV void sha256_round(u32 *s, int i, u32 word, u32 one) {
    u32 a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7];
    u32 e = s[(4 - i) & 7], f = s[(5 - i) & 7], g = s[(6 - i) & 7], sum;
    sum = u32_sum(s[(7 - i) & 7], word, one);
    sum = u32_sum(g ^ (e & (f ^ g)), sum, one);
    sum += sha256_rotr(e ^ sha256_rotr(e, 5) ^ sha256_rotr(e, 19), 6);
    s[(3 - i) & 7] = u32_sum(s[(3 - i) & 7], sum, one);
    sum = u32_sum((a & b) | (c & (a | b)), sum, one);
    s[(7 - i) & 7] = sum + sha256_rotr(a ^ sha256_rotr(a, 11) ^ sha256_rotr(a, 20), 2);
}

/* state = the state after the block w[0..15], which is used up.
 *
 * The first half is spelled out: constant words of a message fold into the constants, and a loop around two messages
 * that share words keeps what depends on those alone out of it. The second half is a loop of eight rounds: a hash with all
 * of them spelled out is 38 KiB of code, and runs at 7.4 instead of 8.8 G/s on an H200. Words are expanded between the
 * rounds; apart from them a hash takes 8 % longer. */
DEV void sha256_block(u32 *state, u32 *w, u32 one) {
    u32 s[8];
    UNROLL
    for (int i = 0; i < 8; i++) s[i] = state[i];
    UNROLL
    for (int i = 0; i < 32; i++) {
        if (i >= 16) sha256_expand(w, i & 15, one);
        sha256_round(s, i, u32_sum(w[i & 15], sha256_constants[i], one), one);
    }
    ROLLED
    for (int from = 32; from < 64; from += 8) {
        UNROLL
        for (int i = 0; i < 8; i++) {
            sha256_expand(w, i, one);
            sha256_round(s, i, u32_sum(w[i], sha256_constants[from + i], one), one);
        }
        UNROLL
        for (int i = 0; i < 8; i++) {
            u32 word = w[i];
            w[i] = w[i + 8];
            w[i + 8] = word;
        }
    }
    UNROLL
    for (int i = 0; i < 8; i++) state[i] = u32_sum(s[i], state[i], one);
}
