/* The pseudorandom function of private retrieval: which blocks a hint holds, and which entry of each.
 * crates/rms24/src/prf.rs is its definition:
 *
 * call    ChaCha12: counter = group (id / 16), nonce = (domain, block, group >> 32); word i is for id 16 * group + i
 * packed  order = word of domain 0, upper half, then word of domain 2, upper half; offset = domain 0 mod w
 * wide    order = word of domain 0;                                 offset = domain 1 * w >> 32
 *
 * PACKED is a define; w, the entries of a block, and c, the number of blocks, are arguments, so that one text serves all
 * databases. The key travels as four scalars: on NVIDIA's cards they are operands of instructions, and take no
 * registers. */

#define PRF_CHOICE 0u
#define PRF_OFFSET 1u
#define PRF_TIE 2u

#define KEY_PARAMS u64 key01, u64 key23, u64 key45, u64 key67
#define KEY_WORDS                                                                                                    \
    {                                                                                                                \
        (u32) key01, (u32)(key01 >> 32), (u32)key23, (u32)(key23 >> 32), (u32)key45, (u32)(key45 >> 32), (u32)key67, \
            (u32)(key67 >> 32)                                                                                       \
    }

DEV void prf_words(u32 *words, const u32 *key, u32 domain, u64 group, u32 block) {
    chacha_words(words, key, (u32)group, domain, block, (u32)(group >> 32));
}

/* The one word of hint `i` of a group. */
DEV u32 prf_word(const u32 *key, u32 domain, u64 group, u32 block, u32 i) {
    u32 words[16], word = 0;
    prf_words(words, key, domain, group, block);
    UNROLL
    for (u32 k = 0; k < 16; k++) word = k == i ? words[k] : word;
    return word;
}

/* The offset a word stands for: of domain 0 where it is packed, else of domain 1. */
DEV u32 prf_offset(u32 word, u32 w) {
#if PACKED
    return word & (w - 1u);
#else
    return (u32)((u64)word * w >> 32);
#endif
}
