//! The params buffer of the search for salts (`c/entry/salts.c`).

use std::ops::Range;

/// Salts a lane tests in one step: those that differ in the last byte of the counter.
pub const SALTS_PER_STEP: u64 = 256;

/// What becomes of a salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stages {
    /// Whether the factory hashes what it is given before it uses it as a salt.
    pub guarded: bool,
    /// Whether the CREATE2 contract is a proxy that creates the contract wanted, at nonce 1.
    pub create: bool,
    /// Where in the first message the last free byte of the salt lies.
    pub byte: u32,
}

impl Stages {
    pub(crate) fn defines(self) -> Vec<(&'static str, u32)> {
        vec![
            ("DIGEST_WORDS", 5),
            ("SALT_GUARD", self.guarded.into()),
            ("SALT_CREATE", self.create.into()),
            ("SALT_BYTE", self.byte),
        ]
    }
}

/// A search for salts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salts {
    /// With a guard, its hash is the salt the chain sees.
    pub guard: Option<Guarded>,
    /// Who executes CREATE2.
    pub deployer: [u8; 20],
    /// The hash of the init code CREATE2 runs.
    pub code_hash: [u8; 32],
    /// Whether what runs then creates the contract wanted, at nonce 1.
    pub create: bool,
    /// The salt's bytes where they are fixed, and where they are free and the counter does not reach.
    pub base: [u8; 32],
    /// Which bytes are free: the counter stands in the last eight of them, least significant byte in the last.
    pub free: [bool; 32],
}

/// A message of at most 135 bytes that is hashed before CREATE2, with the salt or a part of it in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// What stands before the salt.
    pub before: Vec<u8>,
    /// Which bytes of the salt stand in the message: all that are free are among them.
    pub salt: Range<usize>,
    /// What stands behind the salt.
    pub after: Vec<u8>,
}

/// The longest message of one block.
const LONGEST: usize = 135;

impl Salts {
    /// Where the counter's bytes stand in the salt, least significant first.
    fn places(&self) -> Vec<usize> {
        (0..32).rev().filter(|&i| self.free[i]).take(8).collect()
    }

    /// What the program does.
    ///
    /// # Panics
    ///
    /// When no byte is free.
    pub fn stages(&self) -> Stages {
        let last = self.free.iter().rposition(|&free| free).expect("a salt with a free byte");
        let (_, at, own) = self.first();
        let byte = (at + last - own.start) as u32;
        Stages { guarded: self.guard.is_some(), create: self.create, byte }
    }

    /// The first message with a salt of zero, where in it the salt lies, and which bytes of the salt these are.
    fn first(&self) -> (Vec<u8>, usize, Range<usize>) {
        match &self.guard {
            Some(Guarded { before, salt, after }) => {
                let message = [before.as_slice(), &vec![0; salt.len()], after].concat();
                (message, before.len(), salt.clone())
            }
            None => (self.create2(), 21, 0..32),
        }
    }

    /// The message of CREATE2 (EIP-1014) with a salt of zero.
    fn create2(&self) -> Vec<u8> {
        [[0xff].as_slice(), &self.deployer, &[0; 32], &self.code_hash].concat()
    }

    /// The words of the params buffer.
    ///
    /// # Panics
    ///
    /// When the first message does not fit one block, or a free byte of the salt is not in it.
    pub fn words(&self) -> Vec<u32> {
        let (mut message, at, own) = self.first();
        assert!((0..32).all(|i| !self.free[i] || own.contains(&i)), "a free byte that is not hashed");
        let places = self.places();
        for i in own.clone() {
            message[at + i - own.start] = if places.contains(&i) { 0 } else { self.base[i] };
        }
        let mut words = block(message);
        words.push(places.len() as u32);
        words.extend((0..8).map(|k| places.get(k).map_or(0, |&place| (at + place - own.start) as u32)));
        words.push(0);
        words.extend(&block(self.create2())[..22]);
        words
    }
}

/// A message with Keccak's padding, as words of four bytes each, first byte lowest.
fn block(mut message: Vec<u8>) -> Vec<u32> {
    assert!(message.len() <= LONGEST, "{} bytes do not fit a block", message.len());
    message.push(0x01);
    message.resize(136, 0);
    message[135] |= 0x80;
    message.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
}
