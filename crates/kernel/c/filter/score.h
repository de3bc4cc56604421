/* What is counted of a digest of five words, forty hexadecimal digits, for the filter of digests with SCORE 4: a sum of parts, each so
 * many times a number. The parts are data, so that every score shares a text: all lanes go the same way through them.
 *
 * A part is SCORE_PART words: what is counted, its weight, five words of value, five of mask. src/digest_filter.rs writes them. */

#define SCORE_PART 12

#if SCORE == 4

/* The lowest bit of each digit that is zero. */
DEV u32 score_zero_digits(u32 w) {
    w |= w >> 2;
    w |= w >> 1;
    return ~w & 0x11111111u;
}

/* Zero bits at the start of d ^ flip, with each word under a mask. */
DEV u32 score_zero_bits(const u32 *d, u32 flip) {
    u32 bits = 0, run = 1;
    UNROLL
    for (int i = 0; i < 5; i++) {
        u32 more = LEADING_ZEROS(d[i] ^ flip);
        bits += run ? more : 0;
        run &= more == 32;
    }
    return bits;
}

/* Digits that are those of a value, under a mask. */
DEV u32 score_like(const u32 *d, GLOBAL const u32 *value, GLOBAL const u32 *mask) {
    u32 count = 0;
    UNROLL
    for (int i = 0; i < 5; i++) count += COUNT_ONES(score_zero_digits(d[i] ^ value[i]) & mask[i]);
    return count;
}

DEV u32 score_letters(const u32 *d) {
    u32 count = 0;
    UNROLL
    for (int i = 0; i < 5; i++) count += COUNT_ONES(d[i] >> 3 & (d[i] >> 2 | d[i] >> 1) & 0x11111111u);
    return count;
}

/* Bytes that are zero. */
DEV u32 score_zero_bytes(const u32 *d) {
    u32 count = 0;
    UNROLL
    for (int i = 0; i < 5; i++) {
        u32 t = ((d[i] & 0x7f7f7f7fu) + 0x7f7f7f7fu) | d[i];
        count += COUNT_ONES(~t & 0x80808080u);
    }
    return count;
}

/* Bytes at the start whose two digits are equal. */
DEV u32 score_pairs(const u32 *d) {
    u32 unlike[5];
    UNROLL
    for (int i = 0; i < 5; i++) unlike[i] = (d[i] ^ d[i] >> 4) & 0x0f0f0f0fu;
    return score_zero_bits(unlike, 0) / 8;
}

/* The longest run of one digit: a bit for each digit that equals the next, shortened by one until none is left. */
DEV u32 score_run(const u32 *d) {
    u64 same = 0;
    u32 longest = 1;
    UNROLL
    for (int i = 0; i < 5; i++) {
        u32 next = d[i] << 4 | (i < 4 ? d[i < 4 ? i + 1 : 4] >> 28 : 0);
        u32 z = score_zero_digits(d[i] ^ next);
        z = (z | z >> 3) & 0x03030303u;
        z = (z | z >> 6) & 0x000f000fu;
        z = (z | z >> 12) & 0xffu;
        same = same << 8 | z;
    }
    same &= ~(u64)1; /* The last has no next. */
    while (same) {
        same &= same << 1;
        longest++;
    }
    return longest;
}

/* A word's digits from behind. */
DEV u32 score_turned(u32 w) {
    w = w << 16 | w >> 16;
    w = (w & 0x00ff00ffu) << 8 | (w >> 8 & 0x00ff00ffu);
    return (w & 0x0f0f0f0fu) << 4 | (w >> 4 & 0x0f0f0f0fu);
}

/* Zero digits at the end of a word. */
DEV u32 score_ending(u32 w) {
    return w ? (31 - LEADING_ZEROS(w & (0 - w))) / 4 : 8;
}

/* Digits on either side of the middle that mirror each other, outwards from there. */
DEV u32 score_mirrored(const u32 *d) {
    u32 inner = (d[2] ^ score_turned(d[2])) >> 16;
    u32 count = inner ? score_ending(inner) : 4;
    if (count == 4) {
        count += score_ending(d[1] ^ score_turned(d[3]));
        if (count == 12) count += score_ending(d[0] ^ score_turned(d[4]));
    }
    return count;
}

/* Uniswap's formula: see the pattern crate's features. */
DEV u32 score_uniswap(const u32 *d) {
    u32 zeros = score_zero_bits(d, 0) / 4, at = zeros / 8, shift = zeros % 8 * 4, word = 0, next = 0, fours, score, count = 0;
    UNROLL
    for (u32 i = 0; i < 5; i++) {
        word = i == at ? d[i] : word;
        next = i == at + 1 ? d[i] : next;
        count += COUNT_ONES(score_zero_digits(d[i] ^ 0x44444444u));
    }
    word = word << shift | (shift ? next >> (32 - shift) : 0);
    fours = LEADING_ZEROS(word ^ 0x44444444u) / 4;
    score = 10 * zeros + count + ((d[4] & 0xffff) == 0x4444 ? 20 : 0);
    score += fours == 4 ? 60 : fours > 4 ? 40 : 0;
    return fours ? score : 0;
}

/* The sum of the parts. */
DEV u32 score_parts(GLOBAL const u32 *part, u32 count, const u32 *d) {
    u32 score = 0;
    ROLLED
    for (; count; count--, part += SCORE_PART) {
        u32 number = 0;
        switch (part[0]) {
        case 0: number = score_zero_bytes(d); break;
        case 1: number = score_zero_bits(d, part[2]) / 8; break;
        case 2: number = score_zero_bits(d, part[2]) / 4; break;
        case 3: number = score_like(d, part + 2, part + 7); break;
        case 4: number = score_letters(d); break;
        case 5: number = 40 - score_letters(d); break;
        case 6: number = score_pairs(d); break;
        case 7: number = score_run(d); break;
        case 8: number = score_mirrored(d); break;
        case 9: number = score_uniswap(d); break;
        }
        score += part[1] * number;
    }
    return score;
}

#endif
