/* Layout of the buffers, in 32-bit words. src/abi.rs holds the same numbers; tests/host.rs compares.
 *
 * centres  word w of lane l at [w * lanes + l]; words 0..7 are x, 8..15 y, least significant first
 * scratch  half h of element i at quad [(2 * i + h) * lanes + l]; GROUP prefix products, the point walk has 4 more
 * table    GROUP + 1 entries of TABLE_QUADS quads (a define: 15 for the orbit walk, for points 4, x and y);
 *          entry 0 is the step point (2 * GROUP + 1) * G
 * hits     HITS_HEADER words (count, capacity, lost, score to beat), then records of HIT_WORDS words
 *
 * A SET filter has three more:
 * points   GROUP entries of POINT_QUADS quads: t, beta t, beta^2 t, y of iG; entry i at i - 1
 * log      the centre of each lane and step: LOG_QUADS quads (x, y, beta x) at [(step * lanes + l) * LOG_QUADS];
 *          zeros where the lane had met its table
 * lists    for each block `capacity` places for survivors of SURVIVOR_QUADS quads, BLOCK or more, those of one step: number
 *          n of its lane l at n * BLOCK + l. So each lies within 32 bytes, which caches move, and those of a block within
 *          few pages. Then for each block, at LIST_AT, a quad with the count of its candidates and of lanes whose places
 *          were all taken, and `room` candidates of one quad (a hit record but for the code), those of all steps. */

/* The orbit walk's table. */
#define TABLE_WORDS 60
#define TABLE_CUBE 0    /* 8 words: t^3, below p. Entry 0: x of the step point. */
#define TABLE_Y 8       /* 8 words: y. Entry 0: y of the step point. */
#define TABLE_T 16      /* 9 digits of t / p, then 9 of beta * t / p. */
#define TABLE_SQUARE 34 /* 9 digits of t^2 / p, then 9 of beta * t^2 / p. */
#define TABLE_BYTES 52  /* of each of the four: the top bytes of digits 3..10, two words. */

#define HITS_HEADER 4
#define HITS_COUNT 0
#define HITS_CAPACITY 1
#define HITS_LOST 2 /* blocks whose survivors or candidates did not fit: nothing of them was settled */
#define HITS_BEST 3
#define HIT_WORDS 4
#define HIT_LANE 0
#define HIT_STEP 1
#define HIT_CODE 2
#define HIT_TOP 3 /* of a SCORE filter: the score */

/* code: index in bits 0..15, sign in 16, orbit k in 17..18, image j in 19..20, negative of the key in 21; in 22 whether the
 * device could not form the key's digest, so that the host has to look whether it is wanted. */
#define CODE_SIGN 16
#define CODE_ORBIT 17
#define CODE_IMAGE 19
#define CODE_NEGATE 21
#define CODE_OPEN 22
/* The lane met a point of its table: nothing of this step and the later ones was tested, and its
 * centre is still that of the step. */
#define CODE_FAULT 0xffffffffu

#define POINT_QUADS 8
#define LOG_QUADS 6
/* A survivor: the top words of c and beta c, t and beta t; of t^2 and beta t^2, its code and what is behind the words. */
#define SURVIVOR_QUADS 2
/* Its code: index and sign as in a hit's, then the mask of keys, key 8 first. A candidate has the number of its key in
 * place of the mask. */
#define SURVIVOR_MASK 17
#define CANDIDATE_KEY 17
#define LIST_AT(lanes, capacity, room)                                                                                 \
    ((u64)((lanes) / BLOCK) * (capacity) * SURVIVOR_QUADS + (u64)GROUP_ID * (1 + (room)))
