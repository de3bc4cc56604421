/* Parities of hints: every hint adds up the entries it holds, while all hints together go through the blocks of the
 * database in step, so that the entries are found in the second-level cache.
 *
 * RECORD lanes read one entry together, LANE_WORDS words each: lane l the quad l of the entry's first RECORD quads
 * (where LANE_WORDS is 4 or more), and after all quads its share of the rest. They hold the parities of HELD hints in
 * registers. 16 / HELD such records are a team, which has the sixteen hints of a call of the PRF; each of its TEAM lanes
 * makes the call for another block and hands the outcome to the others through shared memory: the offset, and in the top
 * bit whether the order is above the cutoff or equal.
 *
 * Regular hints (PAIRS 0) add up what is below; pairs add up that and, apart from it, everything.
 *
 * Where orders are packed, upper halves equal to the cutoff's count as above here and are listed: pir_ties settles them.
 *
 * database  entries of STRIDE words; the launch's begin after `skip` blocks, with block `first_block`. They are whole
 *           steps of TEAM blocks, and zeros past the end
 * cutoffs   of all hints; the launch's begin at `first_hint`
 * sums      rows of ROW words, the launch's from `first_row` on; it adds words column.. of entries to words column.. of
 *           rows. Pairs: rows of what is below, and `apart` words later those of everything
 * ties      TIES_HEADER words (count, capacity, lost), then (hint, block), the hint counted as in cutoffs */

#define TEAM (RECORD * 16 / HELD)
#define LANE_QUADS (LANE_WORDS / 4)
#define LANE_REST (LANE_WORDS % 4)
#define REST_AT (4 * LANE_QUADS * RECORD)

#define ABOVE 0x80000000u

/* Where a lane reads: its quad and the rest of its words in the first entry of a block. */
typedef struct {
#if LANE_QUADS
    GLOBAL const quad *quads;
#endif
#if LANE_REST == 2
    GLOBAL const u64 *rest;
#elif LANE_REST == 1
    GLOBAL const u32 *rest;
#endif
} lane_view;

typedef struct {
    u32 w[LANE_WORDS];
} lane_words;

INLINE lane_view lane_start(GLOBAL const u32 *entries, u32 lane) {
    lane_view view;
#if LANE_QUADS
    view.quads = (GLOBAL const quad *)entries + lane;
#endif
#if LANE_REST == 2
    view.rest = (GLOBAL const u64 *)(entries + REST_AT) + lane;
#elif LANE_REST == 1
    view.rest = entries + REST_AT + lane;
#endif
    return view;
}

/* Pointers move on by themselves, so that an address is one multiplication and addition of the offset. */
INLINE void lane_next_block(lane_view *view, u32 w) {
#if LANE_QUADS
    view->quads += (u64)w * (STRIDE / 4);
#endif
#if LANE_REST
    view->rest += (u64)w * (STRIDE / LANE_REST);
#endif
}

INLINE lane_words lane_load(const lane_view *view, u32 offset) {
    lane_words words;
#if LANE_QUADS
    quad q = LOAD_STEADY(view->quads + (u64)offset * (STRIDE / 4));
    words.w[0] = q.x;
    words.w[1] = q.y;
    words.w[2] = q.z;
    words.w[3] = q.w;
#endif
#if LANE_REST == 2
    u64 rest = LOAD_STEADY(view->rest + (u64)offset * (STRIDE / 2));
    words.w[LANE_WORDS - 2] = (u32)rest;
    words.w[LANE_WORDS - 1] = (u32)(rest >> 32);
#elif LANE_REST == 1
    words.w[LANE_WORDS - 1] = LOAD_STEADY(view->rest + (u64)offset * STRIDE);
#endif
    return words;
}

/* Which word of an entry is word i of a lane. */
INLINE u32 lane_word(u32 lane, u32 i) {
#if LANE_QUADS
    if (i < 4) return 4 * lane + i;
#endif
    return REST_AT + LANE_REST * lane + (i - 4 * LANE_QUADS);
}

KERNEL void LAUNCH_BOUNDS pir_parities(GLOBAL const u32 *database, GLOBAL const u32 *cutoffs, GLOBAL u32 *sums,
                                       GLOBAL u32 *ties, KEY_PARAMS, u64 first_group, u32 groups, u32 first_hint,
                                       u32 first_row, u32 first_block, u32 skip, u32 blocks, u32 w, u32 column,
                                       u64 apart) {
    LOCAL_ARRAY(quad, codes, 4 * BLOCK);
    LOCAL_ARRAY(u32, limits, BLOCK / TEAM * 16);
    u32 key[8] = KEY_WORDS;
    u32 in_team = LOCAL_ID % TEAM, lane = LOCAL_ID % RECORD, part = in_team / RECORD;
    u32 team = LOCAL_ID / TEAM, number = GROUP_ID * (BLOCK / TEAM) + team;
    u64 group = first_group + number;
    u32 hint = first_hint + 16 * number;
    u32 mine = number < groups, listing = mine && column == 0;
    lane_view view = lane_start(database + (u64)skip * w * STRIDE + column, lane);
    u32 sum[HELD][LANE_WORDS];
#if PAIRS
    u32 all[HELD][LANE_WORDS];
#endif
    GLOBAL u32 *row = sums + ((u64)first_row + number * 16 + part * HELD) * ROW + column;

    UNROLL
    for (u32 i = 0; i < HELD; i++) {
        UNROLL
        for (u32 k = 0; k < LANE_WORDS; k++) {
            sum[i][k] = mine ? row[i * ROW + lane_word(lane, k)] : 0;
#if PAIRS
            all[i][k] = mine ? row[apart + i * ROW + lane_word(lane, k)] : 0;
#endif
        }
    }
    for (u32 i = in_team; i < 16; i += TEAM) limits[team * 16 + i] = mine ? cutoffs[hint + i] : 0;
    BARRIER();

    /* Lanes without a group go along: barriers are for all, and OpenCL has none for fewer. */
    ROLLED
    for (u32 step = 0; step < blocks; step += TEAM) {
        u32 block = first_block + step + in_team;
        u32 words[16];
#if PACKED
        u32 tied = 0;
        prf_words(words, key, PRF_CHOICE, group, block);
        UNROLL
        for (u32 i = 0; i < 16; i++) {
            u32 limit = limits[team * 16 + i];
            u32 above = words[i] >= (limit & 0xffff0000u);
            tied |= (u32)((words[i] ^ limit) < 0x10000u) << i;
            words[i] = prf_offset(words[i], w) | above << 31;
        }
        if (tied != 0 && listing) {
            ROLLED
            for (u32 i = 0; i < 16; i++) {
                if (tied >> i & 1) ties_add(ties, hint + i, block);
            }
        }
#else
        u32 above = 0;
        prf_words(words, key, PRF_CHOICE, group, block);
        UNROLL
        for (u32 i = 0; i < 16; i++) above |= (u32)(words[i] >= limits[team * 16 + i]) << i;
        prf_words(words, key, PRF_OFFSET, group, block);
        UNROLL
        for (u32 i = 0; i < 16; i++) words[i] = prf_offset(words[i], w) | above >> i << 31;
#endif
        UNROLL
        for (u32 i = 0; i < 4; i++) {
            quad q;
            q.x = words[4 * i];
            q.y = words[4 * i + 1];
            q.z = words[4 * i + 2];
            q.w = words[4 * i + 3];
            codes[i * BLOCK + LOCAL_ID] = q;
        }
        TEAM_BARRIER();

        ROLLED
        for (u32 other = 0; other < TEAM; other++) {
            UNROLL
            for (u32 i = 0; i < HELD; i += 4) {
                quad q = codes[(part * (HELD / 4) + i / 4) * BLOCK + LOCAL_ID - in_team + other];
                u32 code[4] = {q.x, q.y, q.z, q.w};
                lane_words x[4];
                UNROLL
                for (u32 j = 0; j < 4; j++) {
#if PAIRS
                    x[j] = lane_load(&view, code[j] & ~ABOVE);
#else
                    UNROLL
                    for (u32 k = 0; k < LANE_WORDS; k++) x[j].w[k] = 0;
                    if (code[j] < ABOVE) x[j] = lane_load(&view, code[j]);
#endif
                }
                UNROLL
                for (u32 j = 0; j < 4; j++) {
                    UNROLL
                    for (u32 k = 0; k < LANE_WORDS; k++) {
#if PAIRS
                        all[i + j][k] ^= x[j].w[k];
                        sum[i + j][k] ^= x[j].w[k] & ~(0u - (code[j] >> 31));
#else
                        sum[i + j][k] ^= x[j].w[k];
#endif
                    }
                }
            }
            lane_next_block(&view, w);
        }
        TEAM_BARRIER();
    }

    (void)apart, (void)ties, (void)listing;
    if (!mine) return;
    UNROLL
    for (u32 i = 0; i < HELD; i++) {
        UNROLL
        for (u32 k = 0; k < LANE_WORDS; k++) {
            row[i * ROW + lane_word(lane, k)] = sum[i][k];
#if PAIRS
            row[apart + i * ROW + lane_word(lane, k)] = all[i][k];
#endif
        }
    }
}
