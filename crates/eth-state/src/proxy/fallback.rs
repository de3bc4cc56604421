//! Calls that go to a node as they are. Answers go back as they came: their text is checked and cut out, not built up in memory,
//! where JSON takes many times its length.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use warpsmith_rms24::remote::Remote;

use super::rpc::{self, Wrong};
use crate::node::is_read_method;

/// Bytes of a node's answer that are taken.
const MAX_ANSWER: u64 = 32 << 20;
/// Calls that are with the node at once: with [`MAX_ANSWER`] this bounds the memory that its answers take.
const MAX_IN_FLIGHT: usize = 16;

/// A node that gets some methods as they are.
pub struct Fallback {
    node: Remote,
    /// The methods.
    pub allowed: BTreeSet<String>,
    in_flight: Arc<Semaphore>,
}

impl Fallback {
    /// Passes these methods to this node.
    pub fn new(node: Remote, allowed: BTreeSet<String>) -> Fallback {
        let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
        Fallback { node: node.hiding_path().failing_fast(), allowed, in_flight }
    }

    /// Asks the node: the text of the answer to the call with this id.
    pub(super) async fn pass(&self, id: &Value, method: &str, params: &[Value]) -> Result<String, Wrong> {
        let permit = Arc::clone(&self.in_flight).acquire_owned().await.expect("it is never closed");
        // With an id of our own: what a wallet counts is not the node's business.
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let (node, is_read, id) = (self.node.clone(), is_read_method(method), id.clone());
        let passed = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let failed = |reason: String| Wrong::new(rpc::FAILED, reason);
            let answer = node
                .post_json(call.as_bytes(), is_read, MAX_ANSWER, |reader| {
                    let mut text = String::new();
                    reader.read_to_string(&mut text).map(|_| text)
                })
                .map_err(|error| failed(error.to_string()))?;
            readdress(&id, &answer).map_err(|reason| failed(reason.to_owned()))
        });
        passed.await.unwrap_or_else(|_| Err(Wrong::new(rpc::FAILED, "the proxy ends")))
    }
}

/// The answer of a node with the id of the wallet's call: its error, or else its result, as they came.
fn readdress(id: &Value, answer: &str) -> Result<String, &'static str> {
    serde_json::from_str::<IgnoredAny>(answer).map_err(|_| "the node's answer is no JSON")?;
    let (mut result, mut error) = (None, None);
    for (key, value) in members(answer) {
        match key {
            "result" => result = Some(value),
            "error" if value != "null" => error = Some(value),
            _ => {}
        }
    }
    let (key, value) = match (error, result) {
        (Some(error), _) if error.starts_with('{') => ("error", error),
        (Some(_), _) => return Err("the node's error is no object"),
        (None, Some(result)) => ("result", result),
        (None, None) => return Err("the node's answer has no result"),
    };
    Ok(format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{value}}}"#))
}

/// The members of an object in valid JSON, each key and the text of its value; none of anything else.
fn members(json: &str) -> Vec<(&str, &str)> {
    let (mut members, mut depth, mut in_string, mut is_escaped) = (Vec::new(), 0, false, false);
    // Where the member began, and where its key ended.
    let (mut begin, mut colon) = (0, None);
    for (at, byte) in json.bytes().enumerate() {
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' if depth == 0 => return members,
            b'{' | b'[' => {
                depth += 1;
                if depth == 1 {
                    begin = at + 1;
                }
            }
            b':' if depth == 1 => colon = Some(at),
            b',' | b'}' if depth == 1 => {
                if let Some(colon) = colon.take() {
                    let key = json[begin..colon].trim().trim_matches('"');
                    members.push((key, json[colon + 1..at].trim()));
                }
                begin = at + 1;
                depth -= i32::from(byte == b'}');
            }
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_back_as_they_came_under_the_id_of_the_call() {
        let id = json!("x");
        let result = r#" {"jsonrpc":"2.0", "id":1 ,"result" : [1.10, {"result":"}\"]"}, 115792089237316195423570985008687907853] } "#;
        assert_eq!(
            readdress(&id, result).unwrap(),
            r#"{"jsonrpc":"2.0","id":"x","result":[1.10, {"result":"}\"]"}, 115792089237316195423570985008687907853]}"#
        );
        let error = r#"{"result":null,"error":{"code":3,"message":"m","data":"0x08"},"id":1}"#;
        let expected = r#"{"jsonrpc":"2.0","id":7,"error":{"code":3,"message":"m","data":"0x08"}}"#;
        assert_eq!(readdress(&json!(7), error).unwrap(), expected);
        let none = r#"{"error":null,"result":null}"#;
        assert_eq!(readdress(&json!(7), none).unwrap(), r#"{"jsonrpc":"2.0","id":7,"result":null}"#);
        for (answer, why) in [
            ("", "no JSON"),
            (r#"{"result":1"#, "no JSON"),
            (r#"{"result":1}}"#, "no JSON"),
            ("{}", "no result"),
            (r#"[{"result":1}]"#, "no result"),
            (r#""result""#, "no result"),
            (r#"{"error":"x"}"#, "no object"),
            (r#"{"a":{"result":1}}"#, "no result"),
        ] {
            assert!(readdress(&id, answer).unwrap_err().contains(why), "{answer}");
        }
    }
}
