/* ChaCha with twelve rounds: sixteen words from a key and a place (counter and three words of nonce), in the layout of
 * RFC 8439. Knows words only.
 *
 * A call is 384 instructions of the logic pipe (a rotation cannot be merged with its exclusive or) and 208 additions,
 * most of which the multiplier takes. */

DEV u32 chacha_rotl(u32 v, u32 n) {
    return v << n | v >> (32 - n);
}

DEV void chacha_quarter(u32 *a, u32 *b, u32 *c, u32 *d) {
    *a += *b;
    *d = chacha_rotl(*d ^ *a, 16);
    *c += *d;
    *b = chacha_rotl(*b ^ *c, 12);
    *a += *b;
    *d = chacha_rotl(*d ^ *a, 8);
    *c += *d;
    *b = chacha_rotl(*b ^ *c, 7);
}

DEV void chacha_words(u32 *s, const u32 *key, u32 counter, u32 nonce0, u32 nonce1, u32 nonce2) {
    s[0] = 0x61707865u;
    s[1] = 0x3320646eu;
    s[2] = 0x79622d32u;
    s[3] = 0x6b206574u;
    UNROLL
    for (int i = 0; i < 8; i++) s[4 + i] = key[i];
    s[12] = counter;
    s[13] = nonce0;
    s[14] = nonce1;
    s[15] = nonce2;
    UNROLL
    for (int pair = 0; pair < 6; pair++) {
        chacha_quarter(s, s + 4, s + 8, s + 12);
        chacha_quarter(s + 1, s + 5, s + 9, s + 13);
        chacha_quarter(s + 2, s + 6, s + 10, s + 14);
        chacha_quarter(s + 3, s + 7, s + 11, s + 15);
        chacha_quarter(s, s + 5, s + 10, s + 15);
        chacha_quarter(s + 1, s + 6, s + 11, s + 12);
        chacha_quarter(s + 2, s + 7, s + 8, s + 13);
        chacha_quarter(s + 3, s + 4, s + 9, s + 14);
    }
    s[0] += 0x61707865u;
    s[1] += 0x3320646eu;
    s[2] += 0x79622d32u;
    s[3] += 0x6b206574u;
    UNROLL
    for (int i = 0; i < 8; i++) s[4 + i] += key[i];
    s[12] += counter;
    s[13] += nonce0;
    s[14] += nonce1;
    s[15] += nonce2;
}
