/* The list of (hint, block) whose order's upper half equals the cutoff's: src/pir.rs holds the same numbers. */

#define TIES_HEADER 4
#define TIES_COUNT 0
#define TIES_CAPACITY 1
#define TIES_LOST 2 /* not 0: more than the capacity came at a time */

DEV void ties_add(GLOBAL u32 *ties, u32 hint, u32 block) {
    u32 at = ATOMIC_ADD(ties + TIES_COUNT, 1u);
    if (at < ties[TIES_CAPACITY]) {
        ties[TIES_HEADER + 2 * (u64)at] = hint;
        ties[TIES_HEADER + 2 * (u64)at + 1] = block;
    }
}
