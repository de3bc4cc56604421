/* Entry point that puts lanes elsewhere between two launches of a walk. */

/* Each of `count` moves is a lane and the sixteen words of its new centre; a thread takes one word of a move. The centres
 * are laid out as walks have them: word w of lane l at w * lanes + l. No lane is moved twice. */
KERNEL void LAUNCH_BOUNDS moves_place(GLOBAL u32 *centres, GLOBAL const u32 *moves, u32 lanes, u32 count) {
    u32 thread = GROUP_ID * BLOCK + LOCAL_ID, word = thread % CENTRE_WORDS;
    if (thread / CENTRE_WORDS < count) {
        GLOBAL const u32 *move = moves + (CENTRE_WORDS + 1) * (thread / CENTRE_WORDS);
        centres[(u64)word * lanes + move[0]] = move[1 + word];
    }
}
