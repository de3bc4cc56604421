/* Ethereum addresses: the last 20 bytes of a Keccak hash, as five words of four bytes each, first byte lowest
 * (how Keccak leaves them). Knows messages, not where they come from. */

/* The five words of a hash, and the same most significant byte first, as filters read them. */
DEV void address_take(u32 *address, const u64 *hash) {
    address[0] = (u32)(hash[1] >> 32);
    address[1] = (u32)hash[2];
    address[2] = (u32)(hash[2] >> 32);
    address[3] = (u32)hash[3];
    address[4] = (u32)(hash[3] >> 32);
}

DEV void address_digest(u32 *digest, const u32 *address) {
    UNROLL
    for (int i = 0; i < 5; i++) digest[i] = SWAP_BYTES(address[i]);
}

/* a = a state of zeros with the end of the padding. */
DEV void address_block(u64 *a) {
    UNROLL
    for (int i = 0; i < 25; i++) a[i] = 0;
    a[16] = KECCAK_PAD;
}

/* The account of a public point: keccak(x, y), each in 32 bytes. message: its 16 words. */
DEV void address_account(u32 *address, const u32 *message) {
    u64 a[25], hash[4];
    address_block(a);
    UNROLL
    for (int i = 0; i < 8; i++) a[i] = (u64)message[2 * i + 1] << 32 | message[2 * i];
    a[8] = 1;
    keccak_hash(hash, a);
    address_take(address, hash);
}

/* The contract `address` creates (CREATE): keccak(rlp(address, nonce)), 23 to 31 bytes. Bytes 0 and 1 of the
 * message are `head`; what follows the address, padding included, is the upper half of `tail` and then `rest`. */
DEV void address_create(u32 *address, u32 head, u32 tail, u64 rest) {
    u64 a[25], hash[4];
    u32 m[6];
    m[0] = head | address[0] << 16;
    UNROLL
    for (int i = 1; i < 5; i++) m[i] = address[i - 1] >> 16 | address[i] << 16;
    m[5] = address[4] >> 16 | tail;
    address_block(a);
    UNROLL
    for (int i = 0; i < 3; i++) a[i] = (u64)m[2 * i + 1] << 32 | m[2 * i];
    a[3] = rest;
    keccak_hash(hash, a);
    address_take(address, hash);
}

/* The contract of CREATE2: keccak(0xff, deployer, salt, code hash), 85 bytes. `block`: that message with its
 * padding and a salt of zero, in words; salt: four lanes, first byte lowest. */
DEV void address_create2(u32 *address, GLOBAL const u32 *block, const u64 *salt) {
    u64 a[25], hash[4];
    address_block(a);
    UNROLL
    for (int i = 0; i < 11; i++) a[i] = (u64)block[2 * i + 1] << 32 | block[2 * i];
    /* The salt begins at byte 21. */
    a[2] |= salt[0] << 40;
    UNROLL
    for (int i = 3; i < 6; i++) a[i] = salt[i - 3] >> 24 | salt[i - 2] << 40;
    a[6] |= salt[3] >> 24;
    keccak_hash(hash, a);
    address_take(address, hash);
}
