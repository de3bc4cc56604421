/* Filter of whole digests: DIGEST_WORDS words, most significant first, known exactly. Knows words only.
 *
 * Accepts what any of its parts accepts, each part there or not by a define, and with a score what reaches that besides:
 *     RANGES  up to four intervals of the top 64 bits, compared one by one
 *     SET     very many intervals of the top 64 bits: a bitmap, then a sorted list
 *     TERMS   conjunctions: bits under a mask have a value, and parities of bits hold
 *     SCORE   counts how good a digest is (1 zero bytes, 2 zero bytes at the start, 3 a digit's run at the start, 4 a sum of
 *             parts, score.h); accepts only what beats everything before, or with EACH whatever reaches what the host said
 *
 * Filter buffer: DIGEST_HEADER words, the ranges (first high, first low, width high, width low; a range accepts
 * top when top - first <= width), then the sections the header points to. src/digest_filter.rs writes it.
 *
 * Set section: six words (bitmap shift, bucket shift, and four as below), then bitmap, buckets, intervals: an
 * interval is four words (first high, low, last high, low), bucket b starts at the first whose end reaches it.
 * Terms section: first quick records (mask and value of words w and w + 1) sorted by w, which starts[w] tells;
 * then whole records of DIGEST_TERM words: masks, values, where the parities are and how many; a parity is
 * eight words of mask and one for odd. */

#define DIGEST_HEADER 16
#define DIGEST_SET 0       /* offsets in words */
#define DIGEST_QUICK 1
#define DIGEST_RECORDS 2
#define DIGEST_DIGIT 3     /* of SCORE 3, eight times in a word */
#define DIGEST_STARTS 4    /* eight words: quick records of word w are starts[w]..starts[w + 1] */
#define DIGEST_PARTS 12    /* of SCORE 4 */
#define DIGEST_COUNT 13    /* and how many those are */
#define DIGEST_TERM 18
#define DIGEST_PARITY 9

typedef struct {
    GLOBAL const u32 *filter;
#if RANGES
    u32 first[RANGES], width[RANGES];
#endif
#if SCORE
    u32 best, digit;
#endif
} filter_state;

/* hits[HITS_BEST] is the score to beat, or with EACH to reach. */
DEV void filter_load(filter_state *f, GLOBAL const u32 *filter, GLOBAL const u32 *hits) {
    f->filter = filter;
#if RANGES
    UNROLL
    for (int r = 0; r < RANGES; r++) {
        GLOBAL const u32 *w = filter + DIGEST_HEADER + 4 * r;
        u64 first = (u64)w[0] << 32 | w[1], width = (u64)w[2] << 32 | w[3];
        f->first[r] = w[0];
        f->width[r] = (u32)((first + width) >> 32) - w[0];
    }
#endif
#if SCORE
    f->best = hits[HITS_BEST];
    f->digit = filter[DIGEST_DIGIT];
#endif
    (void)hits;
}

#if RANGES
DEV u32 filter_ranges(const filter_state *f, const u32 *d) {
    u64 top = (u64)d[0] << 32 | d[1];
    u32 found = 0;
    ROLLED
    for (int r = 0; r < RANGES; r++) {
        GLOBAL const u32 *w = f->filter + DIGEST_HEADER + 4 * r;
        found |= top - ((u64)w[0] << 32 | w[1]) <= ((u64)w[2] << 32 | w[3]);
    }
    return found;
}
#endif

#if SET
DEV u32 filter_set(const filter_state *f, const u32 *d) {
    GLOBAL const u32 *set = f->filter + f->filter[DIGEST_SET];
    u32 bit = d[0] >> set[0], found = 0;
    if (set[set[2] + (bit >> 5)] >> (bit & 31) & 1) {
        GLOBAL const u32 *interval = set + set[4];
        u64 top = (u64)d[0] << 32 | d[1];
        u32 count = set[5], at = set[set[3] + (d[0] >> set[1])];
        for (; at < count && !found; at++) {
            GLOBAL const u32 *w = interval + 4 * (u64)at;
            if (((u64)w[0] << 32 | w[1]) > top) break;
            found = top <= ((u64)w[2] << 32 | w[3]);
        }
    }
    return found;
}
#endif

#if TERMS
/* Whether the digest satisfies the whole of a term. */
DEV u32 filter_term(const filter_state *f, u32 term, const u32 *d) {
    GLOBAL const u32 *w = f->filter + f->filter[DIGEST_RECORDS] + (u64)term * DIGEST_TERM;
    GLOBAL const u32 *parity = f->filter + w[16];
    u32 wrong = 0, count = w[17];
    UNROLL
    for (int i = 0; i < DIGEST_WORDS; i++) wrong |= (d[i] & w[i]) ^ w[i + 8];
    ROLLED
    for (u32 n = 0; n < count && !wrong; n++) {
        u32 sum = 0;
        UNROLL
        for (int i = 0; i < DIGEST_WORDS; i++) sum ^= d[i] & parity[i];
        wrong = (COUNT_ONES(sum) & 1) ^ parity[8];
        parity += DIGEST_PARITY;
    }
    return !wrong;
}

DEV u32 filter_terms(const filter_state *f, const u32 *d) {
    GLOBAL const u32 *filter = f->filter;
    GLOBAL const quad *quick = (GLOBAL const quad *)(filter + filter[DIGEST_QUICK]);
    GLOBAL const quad *at = quick;
    u32 nearest = 1, found = 0, terms = 0;
    UNROLL
    for (int w = 0; w < DIGEST_WORDS - 1; w++) {
        GLOBAL const quad *end;
        terms = filter[DIGEST_STARTS + w + 1];
        end = quick + terms;
        UNROLL_BY_4
        for (; at != end; at++) {
            quad q = *at;
            u32 wrong = ((d[w] & q.x) ^ q.z) | ((d[w + 1] & q.y) ^ q.w);
            nearest = wrong < nearest ? wrong : nearest;
        }
    }
    if (nearest == 0) {
        ROLLED
        for (u32 term = 0; term < terms && !found; term++) found = filter_term(f, term, d);
    }
    return found;
}
#endif

#if SCORE
DEV u32 filter_score(const filter_state *f, const u32 *d) {
    u32 score = 0;
#if SCORE == 4
    score = score_parts(f->filter + f->filter[DIGEST_PARTS], f->filter[DIGEST_COUNT], d);
#elif SCORE == 1
    UNROLL
    for (int i = 0; i < DIGEST_WORDS; i++) {
        /* The top bit of a byte of t is clear exactly where the byte is zero. */
        u32 t = ((d[i] & 0x7f7f7f7fu) + 0x7f7f7f7fu) | d[i];
        score += COUNT_ONES(~t & 0x80808080u);
    }
#else
    u32 run = 1;
    UNROLL
    for (int i = 0; i < DIGEST_WORDS; i++) {
        u32 more = LEADING_ZEROS(d[i] ^ f->digit) / 4;
        score += run ? more : 0;
        run &= more == 8;
    }
#if SCORE == 2
    score /= 2;
#endif
#endif
    (void)f;
    return score;
}

/* Whether this digest raises the best score of the launch, and its score. At most one lane is told so for each score, which
 * bounds the records of a flood, and the best is always told; a tie is not. A lane asks for the launch's best only
 * when it beats what it knows of it: lanes learn, so that even the first launch, where all is an
 * improvement, comes to few atomics. With EACH every digest is told that reaches what the launch began with. */
DEV u32 filter_raise(filter_state *f, const u32 *d, GLOBAL u32 *hits, u32 *told) {
    u32 score = filter_score(f, d), raised = 0;
    *told = score;
#if EACH
    raised = score >= f->best;
    (void)hits;
#else
    if (score > f->best) {
        u32 before = hits[HITS_BEST];
        if (score > before) {
            before = ATOMIC_MAX(hits + HITS_BEST, score);
            raised = score > before;
        }
        f->best = score > before ? score : before;
    }
#endif
    return raised;
}
#endif

/* Whether the digest shall be reported; told is what the record says of it, its top word or its score. */
DEV u32 filter_test(filter_state *f, const u32 *d, GLOBAL u32 *hits, u32 *told) {
    u32 found = 0;
    *told = d[0];
#if RANGES
    UNROLL
    for (int r = 0; r < RANGES; r++) found |= d[0] - f->first[r] <= f->width[r];
    if (found) found = filter_ranges(f, d);
#endif
#if SET
    found |= filter_set(f, d);
#endif
#if TERMS
    if (!found) found = filter_terms(f, d);
#endif
#if SCORE
#if !RANGES && !SET && !TERMS
    found = 1;
#endif
    if (found) found = filter_raise(f, d, hits, told);
#endif
    (void)f;
    (void)d;
    (void)hits;
    return found;
}
