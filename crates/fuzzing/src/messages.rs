//! What comes from other machines: messages of private retrieval, and split results with the public keys they are for.

use warpsmith_chain::TYPES;
use warpsmith_engine::{Secret, Split, join, parse_public_key};
use warpsmith_rms24::database::Description;
use warpsmith_rms24::two_server::{self, Request};
use warpsmith_rms24::wire::{Picks, read_answers, read_queries, read_updates};
use warpsmith_rms24::{Choice, Params};

use crate::assert_told;

/// Bytes as every message of private retrieval, for a small database and a large one, and as the head of a database: each is
/// refused with a reason, or reads back as what it was.
pub fn pir_messages(data: &[u8]) {
    for (entries, size) in [(30, 8), (1 << 20, 40)] {
        let params = Params::new(Choice::new(entries, size)).expect("these are allowed");
        if let Ok((_, queries)) = read_queries(&params, data).map_err(assert_told) {
            queries.for_each(|query| drop(Picks::read(&params, query).map_err(assert_told)));
        }
        Picks::read(&params, data).map_err(assert_told).ok();
        read_answers(&params, data).map_err(assert_told).ok();
        two_server::read(&params, data).map_err(assert_told).ok();
        for update in read_updates(&params, data).map_err(assert_told).into_iter().flatten() {
            assert!(update.indices.iter().all(|&index| params.place(index).is_ok()));
        }
        if let Ok(request) = Request::read(data).map_err(assert_told) {
            assert_eq!(request.to_bytes().as_slice(), data);
            request.cost(&params).map_err(assert_told).ok();
        }
    }
    if let Ok(description) = Description::read("head", data).map_err(assert_told) {
        assert!(description.data_bytes() >= description.params.entries());
    }
}

/// A split result: own key, offset, twist, target, public key, and the rest as the address promised and as the text of a public
/// key. A key is given out only if it leads to that very address and public key; a public key reads back as itself.
pub fn split_result(data: &[u8]) {
    let Some((own, rest)) = data.split_first_chunk::<32>() else { return };
    let Some((offset, rest)) = rest.split_first_chunk::<32>() else { return };
    let Some((public_key, rest)) = rest.split_first_chunk::<33>() else { return };
    let [twist, target, text @ ..] = rest else { return };
    let text = String::from_utf8_lossy(text);
    match parse_public_key(&text) {
        Ok(key) => assert_eq!(parse_public_key(&key.to_string()).ok(), Some(key)),
        Err(error) => assert_told(error),
    }
    let Some(own) = Secret::from_bytes(own) else { return };
    let split = Split { offset: *offset, endo: twist >> 1 & 3, negate: twist & 1 == 1 };
    let public_key = (twist & 8 == 0).then_some(public_key);
    let target = TYPES[usize::from(*target) % TYPES.len()].on[0].target.as_ref();
    match join(&own, &split, target, &text, public_key) {
        Ok(joined) => {
            assert_eq!(joined.address, text);
            assert!(public_key.is_none_or(|key| *key == joined.public_key));
            assert_eq!(joined.secret().public_key().serialize(), joined.public_key);
        }
        Err(error) => assert_told(error),
    }
    // The fuzzer guesses no address: what the key does lead to must be given out, whatever the twist.
    if split.endo < 3
        && let Err(error) = join(&own, &split, target, "", None)
    {
        assert_told(error);
    }
}
