//! Checks of keys and of results with keys.

use std::sync::Arc;

use serde_json::Value;
use warpsmith_chain::coin::Network;
use warpsmith_chain::ethereum::{Account, Contract};
use warpsmith_chain::{Birthday, CHAINS, Chain, KeyTarget, PublicPoint, Target};
use warpsmith_engine::{PublicKey, Secret, parse_public_key, public_point};
use warpsmith_keystore::{bip38, nip49, web3};
use warpsmith_pattern::{Feature, Options, Score, compile};
use warpsmith_text::Shown;

use super::{Error, NoKey, Outcome, PasswordRequest, Report, Verifier};
use crate::key_text::{EncryptedKey, KeyText, KeyTextError, decode_secret, parse_secret, secret_from};

/// The forms of a key, for messages.
const FORMS: &str =
    "64 hex digits, an nsec, or a WIF key, or one of them encrypted (ncryptsec, BIP-38, a Web3 keystore)";

/// Checks a key by itself.
pub(super) fn check_key(line: &str, verifier: &mut Verifier<'_>) -> Result<Report, Error> {
    let mut report = Report::new("a private key");
    let read = match parse_secret(line) {
        Ok(KeyText::Plain(secret)) => Ok(secret),
        Ok(KeyText::Encrypted(key)) => verifier.open(&key, PasswordRequest::from(&key))?,
        Err(error) => Err(NoKey::new(error)?),
    };
    match read {
        Err(none) => none.note(&mut report, "key", &format!("; a key is {FORMS}")),
        Ok(secret) => {
            report.holds("key", "can be read, and has a public key");
            list_addresses(&mut report, &secret);
        }
    }
    Ok(report)
}

/// Lists the public key and the address on every chain.
fn list_addresses(report: &mut Report, secret: &Secret) {
    let public = secret.public_key();
    let point = public_point(&public);
    report.info("public key", const_hex::encode(public.serialize()));
    for row in CHAINS.iter().flat_map(|chain| &chain.addresses) {
        if row.network.unwrap_or_default() == Network::Main {
            let target = row.target.as_ref();
            let name =
                target.variant().map_or(target.name().to_owned(), |kind| format!("{} {kind}", target.name()));
            report.info(&name, address_of(target, &point));
        }
    }
}

fn address_of(target: &dyn KeyTarget, point: &PublicPoint) -> String {
    target.encode(&target.digest(point))
}

/// Checks a Web3 keystore by itself.
pub(super) fn check_keystore(document: &Value, verifier: &mut Verifier<'_>) -> Result<Report, Error> {
    let mut report = Report::new("a Web3 keystore");
    let read = match web3::read(&document.to_string()) {
        Err(error) => Err(NoKey::new(error.into())?),
        Ok(sealed) => match verifier.password(PasswordRequest::Keystore)? {
            None => Err(NoKey::Password),
            Some(password) => {
                let read = sealed.decrypt(&password).map_err(KeyTextError::from);
                let read = read.and_then(|read| Ok((secret_from(&read.secret)?, read.address)));
                match read {
                    Ok(read) => Ok(read),
                    Err(error) => Err(NoKey::new(error)?),
                }
            }
        },
    };
    match read {
        Err(none) => none.note(&mut report, "encrypted", ""),
        Ok((secret, address)) => {
            report.holds("encrypted", "opens with the password");
            let account = address_of(&Account, &public_point(&secret.public_key()));
            if let Some(address) = address {
                let written = address.trim_start_matches("0x").to_lowercase();
                report.compare("address", &account[2..].to_lowercase(), &written, "the key");
            }
            list_addresses(&mut report, &secret);
        }
    }
    Ok(report)
}

pub(super) fn field<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document.get(name).and_then(Value::as_str)
}

/// Checks a result of a search, a scan or a join.
pub(super) fn check_result(document: &Value, verifier: &mut Verifier<'_>) -> Result<Report, Error> {
    let address = field(document, "address").unwrap_or_default();
    let mut report = Report::new(Shown(address).to_string());
    let secret = read_secret(&mut report, document, verifier)?;
    let public = read_public(&mut report, document, secret.as_ref());
    let Some(public) = public else {
        if report.outcome() == Outcome::Holds {
            report.wrong("public key", "there is neither a private nor a public key to compute from");
        }
        return Ok(report);
    };
    if let Some(asked) = public_key_asked_for(address) {
        check_public_key(&mut report, document, (&public, &asked), secret.as_ref());
        return Ok(report);
    }
    let point = public_point(&public);
    let target = match target_of(document, address, &point) {
        Ok(target) => target,
        Err(why) => {
            report.wrong("address", why);
            return Ok(report);
        }
    };
    let target = target.as_ref();
    report.compare("address", &address_of(target, &point), address, "the public key");
    let name = target.variant().map_or(target.name().to_owned(), |kind| format!("{}, {kind}", target.name()));
    report.info("target", name);
    // Where no key is written in the clear, neither are details that hold it.
    let shown = document.get("secret_key").and(secret.as_ref());
    if let (Some(secret), Some(export)) = (shown, field(document, "export")) {
        match *target.export(secret.as_bytes()) == export {
            true => report.holds("export", "is the same private key, as wallets import it"),
            false => report.wrong("export", "is not this private key in the form of this target"),
        }
    }
    let details = document.get("details").and_then(Value::as_object);
    let import = details.and_then(|details| details.get("use")).and_then(Value::as_str);
    let birthday = import.and_then(timestamp).unwrap_or(Birthday::New);
    let computed = target.explain(&point, shown.map(Secret::as_bytes), birthday);
    for (name, written) in details.into_iter().flatten() {
        match computed.iter().find(|(known, _)| known == name) {
            None => report.wrong(name, "is nothing that follows from this key"),
            Some((_, text)) if written == text.as_str() => report.holds(name, "follows from the key"),
            // SEC: a descriptor holds the key.
            Some(_) => report.wrong(name, "is not what follows from the key"),
        }
    }
    check_match(&mut report, document, target, address);
    if document.get("split").is_some() {
        report.info("split", "an offset for `warpsmith join`, which checks it with your own key");
    }
    Ok(report)
}

/// The public key that a scan was asked for, where that is its answer in place of an address.
fn public_key_asked_for(address: &str) -> Option<PublicKey> {
    let is_hex = address.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| parse_public_key(address).ok()).flatten()
}

/// Checks a result of a scan for a public key, which has no address.
fn check_public_key(
    report: &mut Report,
    document: &Value,
    (public, asked): (&PublicKey, &PublicKey),
    secret: Option<&Secret>,
) {
    let x = |key: &PublicKey| const_hex::encode(&key.serialize()[1..]);
    report.compare("address", &x(public), &x(asked), "the public key");
    report.info("target", "a public key");
    let shown = document.get("secret_key").and(secret);
    if let (Some(secret), Some(export)) = (shown, field(document, "export")) {
        match decode_secret(export).is_ok_and(|key| *key == *secret.as_bytes()) {
            true => report.holds("export", "is the same private key, as wallets import it"),
            false => report.wrong("export", "is not this private key"),
        }
    }
}

/// The time from which on a wallet looks for payments, as a line on importing has it: nothing else in a result says it.
fn timestamp(line: &str) -> Option<Birthday> {
    let (_, rest) = line.split_once("\"timestamp\":")?;
    rest.split_once('}')?.0.parse().ok()
}

/// Reads the private key of a result, wherever it is.
fn read_secret(
    report: &mut Report,
    document: &Value,
    verifier: &mut Verifier<'_>,
) -> Result<Option<Secret>, Error> {
    if let Some(text) = field(document, "secret_key").or(field(document, "export")) {
        let read = decode_secret(text).and_then(|bytes| secret_from(&bytes));
        return Ok(read.map_err(|error| report.wrong("private key", error.to_string())).ok());
    }
    let Some(encrypted) = document.get("encrypted") else { return Ok(None) };
    let (format, text) = (field(encrypted, "format"), field(encrypted, "text").unwrap_or_default());
    let key = match format {
        Some("ncryptsec") => nip49::read(text).map(EncryptedKey::Ncryptsec),
        Some("bip38") => bip38::read(text).map(EncryptedKey::Bip38),
        Some("web3") => match encrypted.get("document") {
            Some(document) => web3::read(&document.to_string()).map(EncryptedKey::Web3),
            None => {
                let file = field(encrypted, "file").unwrap_or_default();
                report.info("encrypted", format!("the key is in {}; verify that file too", Shown(file)));
                return Ok(None);
            }
        },
        Some("age") => {
            report.info("encrypted", "for a recipient of age; verify what `age -d` makes of it");
            return Ok(None);
        }
        _ => {
            report.wrong("encrypted", "is of no known format");
            return Ok(None);
        }
    };
    let read = match key {
        Ok(key) => verifier.open(&key, PasswordRequest::Result)?,
        Err(error) => Err(NoKey::new(error.into())?),
    };
    Ok(match read {
        Ok(secret) => {
            report.holds("encrypted", "opens with the password");
            Some(secret)
        }
        Err(none) => {
            none.note(report, "encrypted", "");
            None
        }
    })
}

/// The public key: computed, and compared with what is written; or what is written.
fn read_public(report: &mut Report, document: &Value, secret: Option<&Secret>) -> Option<PublicKey> {
    let written = field(document, "public_key");
    match (secret, written) {
        (Some(secret), written) => {
            let public = secret.public_key();
            if let Some(written) = written {
                let computed = const_hex::encode(public.serialize());
                report.compare("public key", &computed, written, "the private key");
            }
            Some(public)
        }
        (None, Some(written)) => match parse_public_key(written) {
            Ok(public) => {
                report.info("public key", "is a point of the curve; its private key is not here");
                Some(public)
            }
            Err(error) => {
                report.wrong("public key", error.to_string());
                None
            }
        },
        (None, None) => None,
    }
}

/// The target that a result names; or, where it names none, one whose address the key has.
fn target_of(document: &Value, address: &str, point: &PublicPoint) -> Result<Arc<dyn KeyTarget>, String> {
    if let Some(nonce) = field(document, "nonce") {
        let nonce = nonce.parse().map_err(|_| format!("its nonce {} is no number", Shown(nonce)))?;
        return Contract::new(nonce)
            .map(|contract| Arc::new(contract) as _)
            .map_err(|error| error.to_string());
    }
    if let Some(name) = field(document, "target") {
        let chain =
            Chain::find(name).ok_or_else(|| format!("its target is {}, which is not known", Shown(name)))?;
        // A scan names the chain where there is only one type.
        let variant = field(document, "type").filter(|variant| *variant != name);
        return chain.target_of(variant, address).map_err(|error| error.to_string());
    }
    let told = CHAINS.iter().filter_map(|chain| chain.of_address.and_then(|of_address| of_address(address)));
    let listed = CHAINS.iter().flat_map(|chain| &chain.addresses).map(|row| Arc::clone(&row.target));
    listed
        .chain(told)
        .find(|target| address_of(target.as_ref(), point) == address)
        .ok_or_else(|| "is not the address of this key on any chain".to_owned())
}

/// Checks the pattern or the score that a result names.
pub(super) fn check_match(report: &mut Report, document: &Value, target: &dyn Target, address: &str) {
    if let Some(pattern) = field(document, "pattern") {
        // How the pattern was meant is not written.
        let ways = [(false, false), (true, false), (false, true), (true, true)];
        let matches = ways.iter().any(|&(ignore_case, checksum)| {
            let options = Options { ignore_case, checksum, low_bits: None };
            compile([pattern], target, &options).is_ok_and(|patterns| patterns.find(address).is_some())
        });
        match matches {
            true => report.holds("pattern", format!("the address matches {}", Shown(pattern))),
            false => report.wrong("pattern", format!("the address does not match {}", Shown(pattern))),
        }
    }
    let score = document.get("score").and_then(Value::as_u64);
    if let (Some(score), Ok(digest)) = (score, target.decode(address))
        && digest.as_bytes().len() == 20
    {
        // A line for people does not say what was scored.
        let digits = (0..16).map(Feature::Leading);
        let usual = [Feature::LeadingZeros, Feature::Zeros].into_iter().chain(digits).map(Score::from);
        let scored = field(document, "scored").map(Score::parse);
        let is_named = scored.is_some();
        let all: Vec<Score> = match scored {
            None => usual.collect(),
            Some(Ok(scored)) => vec![scored],
            Some(Err(why)) => return report.wrong("scored", why.to_string()),
        };
        match all.iter().find(|kind| u64::from(kind.of(&digest)) == score) {
            Some(kind) => report.holds("score", format!("{score} as the most {kind}")),
            None if is_named => report.wrong("score", format!("the address has no score of {score}")),
            // Text says a score, and not of what.
            None => report.info("score", "the result does not say what was scored"),
        }
    }
}
