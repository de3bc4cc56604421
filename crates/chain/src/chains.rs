//! The table of chains: every chain with every type of address on every network, and what follows from it.
//!
//! What `bench` and `selftest` go through, the types a scan can look for, the kinds of records a database holds, what an
//! address text is taken for and which target a result is of: all are read off [`CHAINS`].

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::coin::{COINS, Coin, Network};
use crate::identify::BARE;
use crate::text::Writing;
use crate::{Digest, Form, KeyTarget, cosmos, ethereum, nostr, tron};

/// A chain and everything it writes keys as.
pub struct Chain {
    /// The word for it on the command line and in results.
    pub name: &'static str,
    /// Its name.
    pub title: &'static str,
    /// What a search is for: `Bitcoin address`.
    pub sought: String,
    /// A pattern that can be found at once, for help texts.
    pub example: &'static str,
    /// What a result shows, for help texts.
    pub shows: &'static str,
    /// The row it comes from, for a coin of Bitcoin's kind.
    pub coin: Option<&'static Coin>,
    /// Every type of address on every network: the main network first, and there the usual type.
    pub addresses: Vec<Listed>,
    /// The target that an address tells beyond those listed, where targets have a parameter.
    pub of_address: Option<OfAddress>,
}

/// The target whose address a text is, if it is one of the chain's.
pub type OfAddress = fn(&str) -> Option<Arc<dyn KeyTarget>>;

/// One type of address on one network.
pub struct Listed {
    /// The addresses.
    pub target: Arc<dyn KeyTarget>,
    /// Their network, where the chain has several.
    pub network: Option<Network>,
    /// How a text of them is told from others, where [`crate::identify`] goes by that.
    pub writing: Option<Writing>,
    /// What a database keeps of them; none for what none keeps, or keeps as another chain's that writes alike.
    pub kind: Option<AddressKind>,
}

/// Every chain. Help texts, self-tests, benches, scans and databases go through it.
pub static CHAINS: LazyLock<Vec<Chain>> = LazyLock::new(|| {
    let coins = COINS.iter().map(|coin| coin.chain());
    let mut chains: Vec<Chain> = [nostr::chain(), ethereum::chain()]
        .into_iter()
        .chain(coins)
        .chain([tron::chain(), cosmos::chain()])
        .collect();
    // Where two chains write alike, a text is told as the first one's, so no record is of the other's kind.
    let mut written: Vec<Writing> = Vec::new();
    for chain in &mut chains {
        for row in &mut chain.addresses {
            row.kind.take_if(|_| row.writing.is_some_and(|writing| written.contains(&writing)));
        }
        written.extend(chain.addresses.iter().filter_map(|row| row.writing));
    }
    chains
});

/// The usual target of the chain with this name.
pub fn find(name: &str) -> Option<&'static dyn KeyTarget> {
    Chain::find(name).map(Chain::usual)
}

impl Chain {
    /// The chain with this name.
    pub fn find(name: &str) -> Option<&'static Chain> {
        CHAINS.iter().find(|chain| chain.name == name)
    }

    /// The usual type of address on the main network.
    pub fn usual(&self) -> &dyn KeyTarget {
        self.addresses[0].target.as_ref()
    }

    /// The types of addresses, the usual one first.
    pub fn types(&self) -> impl Iterator<Item = &'static KeyType> + use<> {
        let name = self.name;
        TYPES.iter().filter(move |known| known.chain.name == name)
    }

    /// The target of a result that names this chain, a type and an address: on the network that the address is of.
    pub fn target_of(&self, variant: Option<&str>, address: &str) -> Result<Arc<dyn KeyTarget>, TypeError> {
        let types: Vec<_> = self.addresses.iter().filter(|row| row.target.variant() == variant).collect();
        let Some(first) = types.first() else {
            let names: Vec<&str> = self.types().filter_map(|known| known.variant()).collect();
            return Err(match variant {
                None => TypeError::Missing { known: names.join(", ") },
                Some(other) if names.is_empty() => {
                    TypeError::NoTypes { given: other.to_owned(), chain: self.name }
                }
                Some(other) => TypeError::Unknown { given: other.to_owned(), known: names.join(", ") },
            });
        };
        let fits = types.iter().find(|row| row.target.decode(address).is_ok());
        if fits.is_none()
            && let Some(told) = self.of_address.and_then(|of_address| of_address(address))
        {
            return Ok(told);
        }
        Ok(Arc::clone(&fits.unwrap_or(first).target))
    }
}

/// A type of address that a chain does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// The chain has several, and none is given.
    #[error("its type is missing; known are {known}")]
    Missing {
        /// The types there are.
        known: String,
    },
    /// None of the chain's types.
    #[error("its type is {given:?}; known are {known}")]
    Unknown {
        /// The type that was given.
        given: String,
        /// The types there are.
        known: String,
    },
    /// The chain has one type without a name.
    #[error("its type is {given:?}, but {chain} has no types")]
    NoTypes {
        /// The type that was given.
        given: String,
        /// The chain.
        chain: &'static str,
    },
}

/// A type of address, on whatever network: what a scan can be narrowed to, and what a finding is.
pub struct KeyType {
    /// The chain.
    pub chain: &'static Chain,
    /// The word for it: `p2pkh` for Bitcoin, `eth`, and with the chain's name before it for other chains of several types.
    pub name: String,
    /// The word for it among what is benched: the chain's name, for all but the usual type with the type's behind it.
    pub sample: String,
    /// The type's row on every network, the main network first.
    pub on: Vec<&'static Listed>,
    /// The kinds of records that a key can have as this type.
    pub kinds: Vec<AddressKind>,
}

/// Every type of every chain, in the order of [`CHAINS`].
pub static TYPES: LazyLock<Vec<KeyType>> = LazyLock::new(|| CHAINS.iter().flat_map(types_of).collect());

fn types_of(chain: &'static Chain) -> Vec<KeyType> {
    let mut types: Vec<KeyType> = Vec::new();
    for row in &chain.addresses {
        let variant = row.target.variant();
        if let Some(known) = types.iter_mut().find(|known| known.variant() == variant) {
            known.on.push(row);
            known.kinds.extend(row.kind);
            continue;
        }
        let full = variant.map_or(chain.name.to_owned(), |variant| format!("{}-{variant}", chain.name));
        // Bitcoin's types had their names before there were other chains of several types.
        let name = match (chain.name, variant) {
            ("btc", Some(variant)) => variant.to_owned(),
            _ => full.clone(),
        };
        let sample = if types.is_empty() { chain.name.to_owned() } else { full };
        types.push(KeyType { chain, name, sample, on: vec![row], kinds: row.kind.into_iter().collect() });
    }
    // A bare hash is looked for as what Bitcoin's base58 addresses hold.
    for known in types.iter_mut().filter(|known| known.chain.name == "btc") {
        if matches!(known.on[0].writing, Some(Writing::Base58 { .. })) {
            known.kinds.push(AddressKind::HASH160);
        }
    }
    types
}

impl KeyType {
    /// The type with this name.
    pub fn find(name: &str) -> Option<&'static KeyType> {
        TYPES.iter().find(|known| known.name == name)
    }

    /// The word that tells types of one chain apart.
    pub fn variant(&self) -> Option<&'static str> {
        self.on[0].target.variant()
    }

    /// What is computed of a key to find such an address.
    pub fn form(&self) -> Form {
        self.on[0].target.form()
    }

    /// The target of a record of one of the type's kinds: on the record's network.
    pub fn target(&self, kind: AddressKind) -> &'static dyn KeyTarget {
        let row = self.on.iter().find(|row| row.kind == Some(kind));
        row.unwrap_or(&self.on[0]).target.as_ref()
    }
}

impl PartialEq for KeyType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for KeyType {}

impl fmt::Debug for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyType({})", self.name)
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What a record of an address says of a key, as one byte. The bytes are those of records on disk and never change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressKind(u8);

/// What is known of a kind.
struct Known {
    kind: AddressKind,
    name: String,
    /// The first row that has it: a text does not say whether its key is compressed.
    row: Option<&'static Listed>,
}

/// Every kind, by ascending byte.
static KINDS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut all = vec![Known { kind: AddressKind::HASH160, name: "hash160".to_owned(), row: None }];
    for known in TYPES.iter() {
        for row in &known.on {
            let Some(kind) = row.kind else { continue };
            if all.iter().all(|other| other.kind != kind) {
                let test = if row.network == Some(Network::Test) { "-test" } else { "" };
                all.push(Known { kind, name: format!("{}{test}", known.name), row: Some(row) });
            }
        }
    }
    all.sort_by_key(|known| known.kind);
    all
});

/// Bytes of the digests of each kind, 0 where there is no such kind: looked up for each of millions of records.
static DIGEST_BYTES: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let mut bytes = [0; 256];
    for known in KINDS.iter() {
        let length = known.row.map_or(20, |row| row.target.form().bytes());
        bytes[usize::from(known.kind.0)] = length as u8;
    }
    bytes
});

impl AddressKind {
    /// The hash of a Bitcoin key, compressed or not.
    pub const P2PKH: Self = Self(0x01);
    /// The hash of a Bitcoin script; it can match as that of a P2WPKH witness program.
    pub const P2SH: Self = Self(0x02);
    /// The Bitcoin witness program with the hash of a compressed key.
    pub const P2WPKH: Self = Self(0x03);
    /// A Bitcoin taproot output key.
    pub const P2TR: Self = Self(0x04);
    /// An Ethereum account.
    pub const ETHEREUM: Self = Self(0x05);
    /// A hash of 20 bytes of which it is not known what it is of: BitcoinAddressFinder keeps no more.
    pub const HASH160: Self = Self(0x06);

    /// An account of a chain of the Cosmos kind, under whatever prefix.
    pub const COSMOS: Self = Self(0x08);

    /// A public key by its x coordinate, which is what an npub is.
    pub const NPUB: Self = Self(0x09);

    /// The kind with this byte, for rows of the table.
    pub(crate) const fn new(byte: u8) -> Self {
        Self(byte)
    }

    /// Every kind, by ascending byte.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|known| known.kind)
    }

    /// The kind with this byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(Self(byte)).filter(|kind| kind.digest_bytes() > 0)
    }

    /// Its byte.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// The kind with this name.
    pub fn find(name: &str) -> Option<Self> {
        KINDS.iter().find(|known| known.name == name).map(|known| known.kind)
    }

    fn known(self) -> &'static Known {
        KINDS.iter().find(|known| known.kind == self).expect("kinds are made from the table")
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        &self.known().name
    }

    /// How many bytes its digests have.
    pub fn digest_bytes(self) -> usize {
        DIGEST_BYTES[usize::from(self.0)].into()
    }

    /// Whether it is a hash of 20 bytes that a list may also name without saying what it is of.
    pub fn is_hash160(self) -> bool {
        let is_kept = |known: &KeyType| known.kinds.contains(&self);
        let forms = [Form::Hash160, Form::Hash160Uncompressed, Form::ScriptHash160];
        TYPES.iter().any(|known| is_kept(known) && forms.contains(&known.form()))
    }

    /// The address with this digest as [`identify`](crate::identify) reads it: its text, or for a bare hash `hash160:` and its
    /// hex digits.
    pub fn text(self, digest: &Digest) -> String {
        match self.known().row {
            Some(row) => row.target.encode(digest),
            None => {
                let digits = digest.as_bytes().iter().map(|byte| format!("{byte:02x}"));
                std::iter::once(BARE.to_owned()).chain(digits).collect()
            }
        }
    }
}

impl fmt::Debug for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressKind({:#04x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, identify};

    #[test]
    fn chains_types_and_kinds_are_found_by_names_of_their_own() {
        for chain in CHAINS.iter() {
            assert_eq!(Chain::find(chain.name).map(|found| found.title), Some(chain.title));
            assert_eq!(CHAINS.iter().filter(|other| other.name == chain.name).count(), 1);
            assert_eq!(find(chain.name).map(|target| target.name()), Some(chain.name));
            assert!(chain.addresses.iter().all(|row| row.target.name() == chain.name));
        }
        for known in TYPES.iter() {
            assert_eq!(KeyType::find(&known.name), Some(known));
            assert_eq!(TYPES.iter().filter(|other| other.sample == known.sample).count(), 1, "{known}");
            // One type is one computation, whatever the network.
            assert!(known.on.iter().all(|row| row.target.form() == known.form()), "{known}");
        }
        assert!(find("NPUB").is_none() && find("").is_none());
    }

    #[test]
    fn every_key_is_told_how_it_is_used_and_no_public_half_is() {
        let mut one = [0; 32];
        one[31] = 1;
        let key = secp256k1::SecretKey::from_secret_bytes(one).unwrap();
        let point = secp256k1::PublicKey::from_secret_key(&key).serialize_uncompressed();
        let (x, y) = (point[1..33].try_into().unwrap(), point[33..].try_into().unwrap());
        let generator = crate::PublicPoint { x, y };
        let uses = |row: &Listed, secret: Option<&[u8; 32]>| {
            let lines = row.target.explain(&generator, secret, crate::Birthday::New);
            lines.iter().filter(|(name, text)| *name == "use" && text.len() > 20).count()
        };
        for row in CHAINS.iter().flat_map(|chain| &chain.addresses) {
            assert_eq!((uses(row, Some(&one)), uses(row, None)), (1, 0), "{}", row.target.name());
        }
    }

    /// The bytes of databases that exist.
    #[test]
    fn kinds_have_the_bytes_they_always_had() {
        let names: Vec<(u8, &str)> = AddressKind::all().map(|kind| (kind.byte(), kind.name())).collect();
        let old = [
            (0x01, "p2pkh"),
            (0x02, "p2sh"),
            (0x03, "p2wpkh"),
            (0x04, "p2tr"),
            (0x05, "eth"),
            (0x06, "hash160"),
            (0x09, "npub"),
            (0x11, "p2pkh-test"),
            (0x12, "p2sh-test"),
            (0x13, "p2wpkh-test"),
            (0x14, "p2tr-test"),
        ];
        assert!(old.iter().all(|kind| names.contains(kind)), "{names:?}");
        assert!(names.is_sorted_by(|one, next| one.0 < next.0));
        assert_eq!(AddressKind::from_byte(0), None);
    }

    #[test]
    fn kinds_go_to_bytes_names_and_texts_and_back() {
        for kind in AddressKind::all() {
            assert_eq!(AddressKind::from_byte(kind.byte()), Some(kind));
            assert_eq!(AddressKind::find(kind.name()), Some(kind));
            let digest = Digest::new(&vec![0x5a; kind.digest_bytes()]);
            let text = kind.text(&digest);
            let Ok(Address::Key(found, same)) = identify(&text) else { panic!("{text}") };
            assert_eq!((found, same), (kind, digest));
        }
        assert_eq!(AddressKind::find("p2wsh"), None);
        assert_eq!(
            AddressKind::HASH160.text(&Digest::new(&[0xab; 20])),
            format!("hash160:{}", "ab".repeat(20))
        );
    }

    /// A scan computes the forms of types; records are looked up by the digest of that form.
    #[test]
    fn types_are_looked_up_in_kinds_of_their_own_size() {
        for known in TYPES.iter() {
            assert!(known.kinds.iter().all(|kind| kind.digest_bytes() == known.form().bytes()), "{known}");
            assert!(known.kinds.is_empty() || Form::SCANNED.contains(&known.form()), "{known}");
        }
    }

    /// Whatever a text is told as, every row that reads it is looked for: a scan for the kind it is told as computes the
    /// forms of all of them.
    #[test]
    fn texts_that_two_rows_write_mean_the_same_keys() {
        let kept = |row: &&Listed| row.kind.is_some() || row.network == Some(Network::Test);
        for row in CHAINS.iter().flat_map(|chain| &chain.addresses).filter(kept) {
            let digest = Digest::new(&vec![0x77; row.target.form().bytes()]);
            let text = row.target.encode(&digest);
            let Ok(Address::Key(told, same)) = identify(&text) else { panic!("{text}") };
            assert_eq!(same, digest);
            let looks = TYPES.iter().filter(|known| known.kinds.contains(&told));
            assert!(looks.into_iter().any(|known| known.form() == row.target.form()), "{text}");
        }
    }

    #[test]
    fn results_name_their_target() {
        let btc = Chain::find("btc").unwrap();
        for row in &btc.addresses {
            let digest = Digest::new(&vec![3; row.target.form().bytes()]);
            let text = row.target.encode(&digest);
            let target = btc.target_of(row.target.variant(), &text).unwrap();
            assert_eq!((target.encode(&digest), target.form()), (text, row.target.form()));
            assert_eq!(target.export(&[7; 32]), row.target.export(&[7; 32]));
        }
        assert!(btc.target_of(None, "").err().unwrap().to_string().contains("missing"));
        assert!(btc.target_of(Some("p2wsh"), "").err().unwrap().to_string().contains("known are p2pkh, "));
    }
}
