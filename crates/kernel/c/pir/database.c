/* The database as parities want it: entries of `stride` words, from entries of `size` bytes without gaps; or made up.
 * Words past an entry's end are zeros, and so are entries past the database's. */

/* Word `word` of an entry that begins at byte `start`, given the aligned words there. */
DEV u32 entry_word(u32 here, u32 next, u32 start, u32 word, u32 size) {
    u32 shift = 8 * (start % 4), left = size - 4 * word;
    u32 value = shift ? here >> shift | next << (32 - shift) : here;
    return left >= 4 ? value : value & ((1u << 8 * left) - 1u);
}

/* Spreads `bytes` bytes of packed entries; whole blocks of `words` words are written, from word `first` on. One word more
 * than the bytes take can be read from `packed`. */
KERNEL void LAUNCH_BOUNDS pir_spread(GLOBAL const u32 *packed, GLOBAL u32 *database, u64 bytes, u64 words,
                                     u64 first, u32 size, u32 stride, u32 lanes) {
    for (u64 n = GROUP_ID * BLOCK + LOCAL_ID; n < words; n += lanes) {
        u32 word = (u32)(n % stride), value = 0;
        u64 start = n / stride * size;
        if (start < bytes && 4 * word < size) {
            u64 at = (start + 4 * word) / 4;
            value = entry_word(packed[at], packed[at + 1], (u32)start, word, size);
        }
        database[first + n] = value;
    }
}

/* Bytes 4 * at and on of pseudorandom ones: SplitMix64 of their place. */
DEV u32 database_random(u64 at) {
    u64 z = (at / 2 + 1) * U64C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * U64C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * U64C(0x94d049bb133111eb);
    z ^= z >> 31;
    return at % 2 ? (u32)(z >> 32) : (u32)z;
}

/* Makes up a database of pseudorandom entries, for measuring. */
KERNEL void LAUNCH_BOUNDS pir_make_up(GLOBAL u32 *database, u64 entries, u64 words, u32 size, u32 stride,
                                      u32 lanes) {
    for (u64 n = GROUP_ID * BLOCK + LOCAL_ID; n < words; n += lanes) {
        u32 word = (u32)(n % stride), value = 0;
        u64 start = n / stride * size;
        if (n / stride < entries && 4 * word < size) {
            u64 at = (start + 4 * word) / 4;
            value = entry_word(database_random(at), database_random(at + 1), (u32)start, word, size);
        }
        database[n] = value;
    }
}
