//! Results and keys in a text.

use serde_json::{Map, Value};
use warpsmith_keystore::web3;
use zeroize::{Zeroize, Zeroizing};

/// A result or a key, as it is written.
///
/// See [`claims`].
pub enum Claim {
    /// A result of a search, a scan or a join.
    Result(Document),
    /// A Web3 keystore.
    Keystore(Document),
    /// A line with a private key in any form.
    Key(Zeroizing<String>),
}

/// A JSON document whose texts are erased when it is dropped.
///
/// See [`claims`].
pub struct Document(pub(super) Value);

impl Drop for Document {
    fn drop(&mut self) {
        fn erase(value: &mut Value) {
            match value {
                Value::String(text) => text.zeroize(),
                Value::Array(list) => list.iter_mut().for_each(erase),
                Value::Object(fields) => fields.values_mut().for_each(erase),
                _ => {}
            }
        }
        erase(&mut self.0);
    }
}

/// Documents with a result.
const RESULTS: [&str; 3] = ["match", "joined", "explanation"];

/// Iterates over the results and keys of a text: JSON documents, results for people in labelled lines, or keys, one per line.
///
/// Other JSON documents are skipped. Text without anything that was meant to be a key has none; beside keys, a line that is no key is
/// one that went wrong.
///
/// ```
/// use warpsmith::verify::{Claim, claims};
///
/// let text = "address  1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH\nhex      01\n\naddress  1CUN\nhex      03\n";
/// assert_eq!(claims(text).filter(|claim| matches!(claim, Claim::Result(_))).count(), 2);
/// assert_eq!(claims("Dear all,\n").count(), 0);
/// ```
pub fn claims(text: &str) -> Box<dyn Iterator<Item = Claim> + '_> {
    let has_line = |head: &str| text.lines().any(|line| line.trim_start().starts_with(head));
    if has_line("{") {
        return Box::new(json_documents(text).map(Document).filter_map(|mut document| {
            label_details(&mut document.0);
            match () {
                () if web3::is_keystore(&document.0) => Some(Claim::Keystore(document)),
                () if is_result(&document.0) => Some(Claim::Result(document)),
                () => None,
            }
        }));
    }
    if has_line("address ") || has_line("score ") {
        return Box::new(labelled(text).into_iter().map(Claim::Result));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    // Other text is no key that went wrong.
    if !lines.clone().any(is_like_a_key) {
        return Box::new(std::iter::empty());
    }
    Box::new(lines.map(|line| Claim::Key(Zeroizing::new(line.to_owned()))))
}

/// Iterates over the JSON objects in a text, whatever is between them: lines, indented documents, or labels.
///
/// ```
/// use warpsmith::verify::json_documents;
///
/// let text = "split    {\"a\":{\"b\":1}}\n{\n  \"c\": 2\n}{\"d\":3} {\"broken\":";
/// let found: Vec<String> = json_documents(text).map(|document| document.to_string()).collect();
/// assert_eq!(found, [r#"{"a":{"b":1}}"#, r#"{"c":2}"#, r#"{"d":3}"#]);
/// ```
pub fn json_documents(text: &str) -> impl Iterator<Item = Value> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(start) = rest.find('{') {
            rest = &rest[start..];
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(document)) = stream.next() {
                rest = &rest[stream.byte_offset()..];
                return Some(document);
            }
            rest = &rest[1..];
        }
        None
    })
}

/// Whether a document is a result. Other documents have addresses, too.
fn is_result(document: &Value) -> bool {
    let event = document.get("event").and_then(Value::as_str);
    event.is_none_or(|event| RESULTS.contains(&event))
        && ["address", "salt"].iter().any(|name| document.get(name).is_some())
}

/// Returns whether a line has the shape of a key, with a character too many, missing or mistyped. Long addresses and lines of base64
/// have none.
fn is_like_a_key(line: &str) -> bool {
    let line = line.strip_prefix("0x").or(line.strip_prefix("0X")).unwrap_or(line);
    if !line.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    let begins = |heads: &[&str]| {
        heads.iter().any(|head| line.get(..head.len()).is_some_and(|start| start.eq_ignore_ascii_case(head)))
    };
    // An address in bech32 has one case, a key in base58 both.
    let is_mixed =
        line.contains(|c: char| c.is_ascii_uppercase()) && line.contains(|c: char| c.is_ascii_lowercase());
    match line.len() {
        _ if begins(&["nsec1", "ncryptsec1"]) => true,
        62..=66 => line.bytes().filter(|byte| !byte.is_ascii_hexdigit()).count() <= 2,
        50..=53 => is_mixed && line.starts_with(['5', 'K', 'L', '9', 'c']),
        57..=59 => is_mixed && line.starts_with("6P"),
        _ => false,
    }
}

/// Gives the details of a result the names that people see, in which there may be spaces.
fn label_details(document: &mut Value) {
    if let Some(details) = document.get_mut("details").and_then(Value::as_object_mut) {
        *details = std::mem::take(details)
            .into_iter()
            .map(|(name, value)| (name.replace('_', " "), value))
            .collect();
    }
}

/// Results for people as documents: a block of lines each, a label and two spaces before every value.
fn labelled(text: &str) -> Vec<Document> {
    let mut all = Vec::new();
    let mut fields = Map::new();
    let mut details = Map::new();
    let mut end = |fields: &mut Map<String, Value>, details: &mut Map<String, Value>| {
        // A split result has all of itself in one line.
        let split = fields.remove("split").and_then(|line| json_documents(line.as_str()?).next());
        let mut fields = std::mem::take(fields);
        if let Some(split) = split {
            all.push(Document(split));
        } else if !fields.is_empty() {
            fields.insert("details".to_owned(), Value::Object(std::mem::take(details)));
            all.push(Document(Value::Object(fields)));
        }
        details.clear();
    };
    for line in text.lines() {
        if let Some(mut brief) = brief(line) {
            end(&mut fields, &mut details);
            // A salt without its factory says nothing; the best of them follows in full.
            if brief.contains_key("export") {
                end(&mut brief, &mut details);
            }
            continue;
        }
        let Some((label, value)) = line.split_once("  ") else {
            if line.trim().is_empty() {
                end(&mut fields, &mut details);
            }
            continue;
        };
        let (label, value) = (label.trim(), value.trim());
        let text = Value::String(value.to_owned());
        let encrypted =
            |format: &str, field: &str, value: Value| serde_json::json!({ "format": format, field: value });
        let (field, value) = match label {
            "secret" => ("export", text),
            "hex" => ("secret_key", text),
            "public" => ("public_key", text),
            "score" | "line" => (label, value.parse::<u64>().map_or(text, Value::from)),
            "ncryptsec" | "bip38" => ("encrypted", encrypted(label, "text", text)),
            "keystore" => match serde_json::from_str(value) {
                Ok(document) => ("encrypted", encrypted("web3", "document", document)),
                Err(_) => ("encrypted", encrypted("web3", "file", text)),
            },
            "age" => ("encrypted", encrypted("age", "text", text)),
            "address" | "pattern" | "type" | "amount" | "output" | "nonce" | "salt" | "split" => {
                (label, text)
            }
            // Of an encrypted key it is no detail.
            "use" if fields.contains_key("encrypted") => continue,
            _ => {
                details.insert(label.to_owned(), text);
                continue;
            }
        };
        fields.insert(field.to_owned(), value);
    }
    end(&mut fields, &mut details);
    all
}

/// The fields of a line that a scored search prints of each improvement: labels and values, two spaces between.
fn brief(line: &str) -> Option<Map<String, Value>> {
    let pair = |part: &str| {
        let (label, value) = part.split_once(' ')?;
        let (label, value) = (label.to_owned(), Value::String(value.to_owned()));
        Some(match label.as_str() {
            "secret" => ("export".to_owned(), value),
            "score" => (label, value.as_str()?.parse::<u64>().map_or(value.clone(), Value::from)),
            _ => (label, value),
        })
    };
    let parts: Vec<&str> = line.split("  ").collect();
    let is_brief = parts.len() > 1 && parts[0].starts_with("score ") && parts[1].starts_with("address ");
    is_brief.then(|| parts.into_iter().map(pair).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents of the results of a text.
    fn results(text: &str) -> Vec<Value> {
        let results = claims(text).filter_map(|claim| match claim {
            Claim::Result(document) => Some(document.0.clone()),
            _ => None,
        });
        results.collect()
    }

    #[test]
    fn documents_are_sorted_by_what_they_hold() {
        let text = r#"
            {"event":"match","address":"x","details":{"proxy_code_hash":"y"}}
            {"event":"progress","address":"x"} {"a":1}
            {"version":3,"crypto":{},"address":"x"}
            {"salt":"0x00"}"#;
        let kinds: Vec<_> = claims(text).map(|claim| matches!(claim, Claim::Keystore(_))).collect();
        assert_eq!(kinds, [false, true, false]);
        assert_eq!(results(text)[0]["details"]["proxy code hash"], "y");
    }

    #[test]
    fn labelled_lines_become_documents() {
        let text = "address  1A\nsecret   K\nhex      00\npublic   02\npattern  1A  B\npath     m/1\n\n\
                    address  1B\nncryptsec  ncryptsec1q\nuse      a client\n";
        let [first, second] = &results(text)[..] else { panic!("{:?}", results(text)) };
        assert_eq!(
            (&first["export"], &first["secret_key"], &first["public_key"]),
            (&"K".into(), &"00".into(), &"02".into())
        );
        assert_eq!((&first["pattern"], &first["details"]["path"]), (&"1A  B".into(), &"m/1".into()));
        assert_eq!(second["encrypted"], serde_json::json!({ "format": "ncryptsec", "text": "ncryptsec1q" }));
        assert!(second["details"].get("use").is_none());
    }

    #[test]
    fn brief_lines_of_scores_are_results_of_their_own() {
        let text = "score 2  address 0xaa  secret 0x01\nscore 3  address 0xbb  salt 0x02\n\n\
                    address  0xcc\nscore    4\nsalt     0x03\n";
        let results = results(text);
        assert_eq!(results.len(), 2, "a salt without its factory says nothing");
        assert_eq!((&results[0]["score"], &results[0]["export"]), (&2.into(), &"0x01".into()));
        assert_eq!((&results[1]["score"], &results[1]["salt"]), (&4.into(), &"0x03".into()));
    }

    #[test]
    fn text_without_keys_has_no_claims() {
        let (key, address) = ("1".repeat(63) + "2", "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH");
        for nothing in
            ["", "hello\n", "Dear all,\nit is 1Bg.\n", address, "# comment\n", &format!("the {key}")]
        {
            assert_eq!(claims(nothing).count(), 0, "{nothing}");
        }
        assert_eq!(claims(&format!("# own\n{key}\n\nhello\n")).count(), 2);
        assert_eq!(claims(&format!("0x{key}x")).count(), 1);
        assert_eq!(claims(&format!("npub1{key}")).count(), 0);
    }
}
