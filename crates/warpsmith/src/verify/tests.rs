use serde_json::{Value, json};
use warpsmith_chain::coin::{AddressType, BITCOIN};
use warpsmith_chain::ethereum::{Account, Contract, Deployment, SaltRequest};
use warpsmith_chain::{Birthday, KeyTarget, SaltTarget, Target};
use warpsmith_engine::public_point;
use warpsmith_keystore::{KeySecurity, nip49, web3};

use super::*;

fn secret() -> Secret {
    Secret::from_bytes(&[7; 32]).expect("a key")
}

fn password(text: &str) -> Password {
    Password::new(text.to_owned().into()).expect("a password")
}

/// The only report of a text.
fn report(text: &str, verifier: &mut Verifier<'_>) -> Report {
    let reports: Vec<Report> = claims(text).map(|claim| verifier.verify(&claim).expect("a report")).collect();
    let [report] = <[Report; 1]>::try_from(reports).expect("one report");
    report
}

fn outcome(document: &Value) -> Outcome {
    report(&document.to_string(), &mut Verifier::new()).outcome()
}

/// Details as documents have them.
fn details<T: AsRef<str>>(all: impl IntoIterator<Item = (&'static str, T)>) -> Value {
    let all = all.into_iter().filter(|(name, _)| !["salt", "address"].contains(name));
    all.map(|(name, value)| (name.replace(' ', "_"), Value::from(value.as_ref()))).collect()
}

/// A result of a key with everything in it.
fn result(target: &dyn KeyTarget, nonce: Option<&str>) -> Value {
    let point = public_point(&secret().public_key());
    let explained = target.explain(&point, Some(secret().as_bytes()), Birthday::New);
    let address = target.encode(&target.digest(&point));
    let head = target.encoding().head().len();
    let mut result = json!({
        "event": "match",
        "target": target.name(),
        "type": target.variant(),
        "address": address,
        "pattern": if target.variant().is_some() { &address[..7] } else { &address[head..head + 3] },
        "public_key": const_hex::encode(secret().public_key().serialize()),
        "secret_key": const_hex::encode(secret().as_bytes()),
        "export": target.export(secret().as_bytes()).as_str(),
        "details": details(explained.iter().map(|(name, value)| (*name, value.as_str()))),
    });
    if let Some(nonce) = nonce {
        result["nonce"] = nonce.into();
    }
    result
}

/// A result of an Ethereum account.
fn account() -> Value {
    result(&Account, None)
}

/// A result of a salt.
fn salt_of(deployment: &Deployment) -> Value {
    // Its first 20 bytes are the caller's.
    let salt = [0x11; 32];
    json!({
        "event": "match",
        "target": deployment.name(),
        "address": deployment.encode(&deployment.digest(&salt)),
        "salt": const_hex::encode_prefixed(salt),
        "details": details(deployment.explain(&salt)),
    })
}

/// A result of a CREATE2 salt.
fn salt() -> Value {
    let factory = Factory::find("arachnid").expect("a factory");
    let deployment = Deployment::create2(factory, None, Some([0x22; 32]), &SaltRequest::default());
    salt_of(&deployment.expect("a deployment"))
}

/// A result of a salt that only one caller can use.
fn salt_of_a_caller() -> Value {
    let factory = Factory::find("0age").expect("a factory");
    let request = SaltRequest { caller: Some([0x11; 20]), ..SaltRequest::default() };
    salt_of(&Deployment::create2(factory, None, Some([0x22; 32]), &request).expect("a deployment"))
}

#[test]
fn whole_results_hold_and_every_altered_text_does_not() {
    fn paths(value: &Value, all: &mut Vec<String>, path: &str) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| paths(value, all, &format!("{path}/{name}")));
            }
            Value::String(_) => all.push(path.to_owned()),
            _ => {}
        }
    }
    let contract = Contract::new(300).expect("a nonce");
    let taproot = BITCOIN.main(AddressType::P2tr);
    let keys = [account(), result(&contract, Some("300")), result(&taproot, None)];
    for result in keys.into_iter().chain([salt(), salt_of_a_caller()]) {
        assert_eq!(outcome(&result), Outcome::Holds, "{result}");
        let mut all = Vec::new();
        paths(&result, &mut all, "");
        all.retain(|path| !["/event", "/target", "/type", "/details/call"].contains(&path.as_str()));
        assert!(all.len() > 4, "{all:?}");
        for path in all {
            let mut altered = result.clone();
            let place = altered.pointer_mut(&path).expect("a text");
            let was = place.as_str().expect("a text").to_owned();
            let (at, old) = was.char_indices().rev().nth(2.min(was.len() - 1)).expect("a character");
            let new = if old == '4' { "7" } else { "4" };
            *place = json!(format!("{}{new}{}", &was[..at], &was[at + old.len_utf8()..]));
            let expected = match path.as_str() {
                // A factory of another name may be one with a rule of its own.
                "/details/factory" => Outcome::Unknown(UnknownReason::Factory),
                _ => Outcome::DoesNotHold,
            };
            assert_eq!(outcome(&altered), expected, "{path}: {altered}");
        }
    }
}

#[test]
fn a_factory_of_ones_own_is_known_where_it_is_given() {
    let mut result = salt();
    result["details"]["factory"] = json!("own");
    let mut own = Factory::find("arachnid").expect("a factory").clone();
    own.name = "own".to_owned();
    let text = result.to_string();
    let unknown = report(&text, &mut Verifier::new());
    assert_eq!(unknown.outcome(), Outcome::Unknown(UnknownReason::Factory));
    assert!(!unknown.checks[0].detail.contains("--"), "{unknown:?}");
    assert_ne!(report(&text, &mut Verifier::new().factory(&own)).outcome(), unknown.outcome());
}

#[test]
fn a_result_without_any_key_does_not_hold() {
    let mut result = account();
    for field in ["secret_key", "export", "public_key", "details"] {
        result.as_object_mut().expect("an object").remove(field);
    }
    assert_eq!(outcome(&result), Outcome::DoesNotHold);
    // A public key is enough, and says so.
    result["public_key"] = account()["public_key"].clone();
    let report = report(&result.to_string(), &mut Verifier::new());
    assert_eq!(report.outcome(), Outcome::Holds);
    assert!(report.checks.iter().any(|check| check.detail.contains("private key is not here")));
}

#[test]
fn encrypted_keys_need_their_password() {
    let text =
        nip49::encrypt(secret().as_bytes(), &password("p"), 4, KeySecurity::NeverShown).expect("a text");
    let point = public_point(&secret().public_key());
    let npub = warpsmith_chain::nostr::Npub;
    let result = json!({
        "target": "npub",
        "address": npub.encode(&npub.digest(&point)),
        "encrypted": { "format": "ncryptsec", "text": text },
    });
    let check = |given: &str, text: &str| {
        let mut asked = Vec::new();
        let verifier = Verifier::new();
        let outcome = report(
            text,
            &mut verifier.passwords(|request| {
                asked.push(request);
                Ok(password(given))
            }),
        )
        .outcome();
        (outcome, asked)
    };
    assert_eq!(check("p", &result.to_string()), (Outcome::Holds, vec![PasswordRequest::Result]));
    assert_eq!(check("q", &result.to_string()).0, Outcome::DoesNotHold);
    assert_eq!(check("p", &text), (Outcome::Holds, vec![PasswordRequest::Ncryptsec]));
    assert_eq!(outcome(&result), Outcome::Unknown(UnknownReason::Password));
    let claim = claims(&text).next().expect("a key");
    let failed = Verifier::new().passwords(|_| Err("no terminal".into())).verify(&claim);
    assert!(matches!(failed, Err(Error::Password(_))), "{failed:?}");
}

#[test]
fn a_keystore_of_another_account_does_not_hold() {
    let keystore = |address: &[u8; 20]| {
        web3::encrypt(secret().as_bytes(), address, &password("p"), 4).expect("a keystore")
    };
    let digest = Account.digest(&public_point(&secret().public_key()));
    let mut address = [0; 20];
    address.copy_from_slice(digest.as_bytes());
    for (address, expected) in [(address, Outcome::Holds), ([7; 20], Outcome::DoesNotHold)] {
        let mut verifier = Verifier::new().passwords(|request| {
            assert_eq!(request, PasswordRequest::Keystore);
            Ok(password("p"))
        });
        assert_eq!(report(&keystore(&address), &mut verifier).outcome(), expected);
    }
}

#[test]
fn reports_hold_no_private_key() {
    let hex = const_hex::encode(secret().as_bytes());
    for text in [hex.clone(), account().to_string()] {
        let report = format!("{:?}", report(&text, &mut Verifier::new()));
        assert!(!report.contains(&hex), "{report}");
    }
}
