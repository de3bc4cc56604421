//! The coins. A coin of Bitcoin's kind is one row here: its versions, its human-readable part, its networks.

use super::{AddressType, Coin, Params};
use crate::text::Writing;

/// Base58 under a version, and what such texts begin with.
const fn base58(version: u8, head: &'static str) -> Writing {
    Writing::Base58 { version, head }
}

/// Witness programs of versions 0 and 1 under a human-readable part.
macro_rules! segwit {
    ($hrp:literal) => {
        Some([Writing::segwit_v0(concat!($hrp, "1q")), Writing::segwit_v1(concat!($hrp, "1p"))])
    };
}

/// Every coin of Bitcoin's kind. Where two write alike, as test networks do, a text is told as the first one's.
pub static COINS: &[&Coin] = &[&BITCOIN, &LITECOIN, &DOGECOIN, &BITCOIN_CASH];

/// Bitcoin.
pub static BITCOIN: Coin = Coin {
    name: "btc",
    title: "Bitcoin",
    example: "1Love",
    types: &AddressType::ALL,
    descriptors: true,
    importing: |_, birthday| {
        format!(
            "`bitcoin-cli -stdin importdescriptors < FILE`, where FILE (mode 0600) holds \
             [{{\"desc\":\"the descriptor\",\"timestamp\":{birthday}}}]"
        )
    },
    networks: [
        Params {
            p2pkh: base58(0x00, "1"),
            p2sh: Some(base58(0x05, "3")),
            segwit: segwit!("bc"),
            wif: 0x80,
            wif_heads: &["5", "K", "L"],
            records: 0x00,
        },
        Params {
            p2pkh: base58(0x6f, "m or n"),
            p2sh: Some(base58(0xc4, "2")),
            segwit: segwit!("tb"),
            wif: 0xef,
            wif_heads: &["9", "c"],
            records: 0x10,
        },
    ],
};

/// Litecoin. Wallets know the taproot outputs of BIP-86, but no descriptor of an output key without a tweak.
pub static LITECOIN: Coin = Coin {
    name: "ltc",
    title: "Litecoin",
    example: "LUcky",
    types: &[
        AddressType::P2pkh,
        AddressType::P2pkhUncompressed,
        AddressType::P2sh,
        AddressType::P2wpkh,
        AddressType::P2tr,
    ],
    descriptors: true,
    importing: |address_type, _| {
        match address_type {
        AddressType::P2tr | AddressType::Rawtr => {
            "a Litecoin wallet that imports descriptors with tr(); Litecoin Core 0.21 does not, and a WIF key would give it other \
             addresses"
        }
        _ => "`litecoin-cli -stdin importprivkey < FILE`, where FILE (mode 0600) holds the WIF key",
    }
    .to_owned()
    },
    networks: [
        Params {
            p2pkh: base58(0x30, "L"),
            p2sh: Some(base58(0x32, "M")),
            segwit: segwit!("ltc"),
            wif: 0xb0,
            wif_heads: &["6", "T"],
            records: 0x20,
        },
        Params {
            p2pkh: base58(0x6f, "m or n"),
            p2sh: Some(base58(0x3a, "Q")),
            segwit: segwit!("tltc"),
            wif: 0xef,
            wif_heads: &["9", "c"],
            records: 0x30,
        },
    ],
};

/// Dogecoin. It has no witness programs, so a hash of a script is never that of a single key.
pub static DOGECOIN: Coin = Coin {
    name: "doge",
    title: "Dogecoin",
    example: "DMoon",
    types: &[AddressType::P2pkh, AddressType::P2pkhUncompressed],
    descriptors: false,
    importing: |_, _| {
        "`dogecoin-cli -stdin importprivkey < FILE`, where FILE (mode 0600) holds the WIF key".to_owned()
    },
    networks: [
        Params {
            p2pkh: base58(0x1e, "D"),
            p2sh: Some(base58(0x16, "9 or A")),
            segwit: None,
            wif: 0x9e,
            wif_heads: &["6", "Q"],
            records: 0x40,
        },
        Params {
            p2pkh: base58(0x71, "n"),
            p2sh: Some(base58(0xc4, "2")),
            segwit: None,
            wif: 0xf1,
            wif_heads: &["9", "c"],
            records: 0x50,
        },
    ],
};

/// Bitcoin Cash, in cashaddr. Its old addresses are written as Bitcoin's are.
pub static BITCOIN_CASH: Coin = Coin {
    name: "bch",
    title: "Bitcoin Cash",
    example: "qpcash",
    types: &[AddressType::P2pkh, AddressType::P2pkhUncompressed],
    descriptors: false,
    importing: |_, _| {
        "`bitcoin-cli -stdin importprivkey < FILE` of Bitcoin Cash Node, where FILE (mode 0600) holds the WIF key; Electron Cash \
         imports that too"
            .to_owned()
    },
    networks: [
        Params {
            p2pkh: Writing::CashAddr { start: "bitcoincash:q" },
            p2sh: None,
            segwit: None,
            wif: 0x80,
            wif_heads: &["5", "K", "L"],
            records: 0x60,
        },
        Params {
            p2pkh: Writing::CashAddr { start: "bchtest:q" },
            p2sh: None,
            segwit: None,
            wif: 0xef,
            wif_heads: &["9", "c"],
            records: 0x70,
        },
    ],
};
