//! Job texts as workers read them: in parts that fit a message, by request to the coordinator.

use async_nats::Client;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::job::Descriptor;

/// Bytes of a text in one message.
const PART_BYTES: usize = 32 << 10;
/// Parts of the longest text.
const MAX_PARTS: usize = Descriptor::MOST_BYTES / PART_BYTES;

/// Request of a worker for one part of a job's text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TextRequest {
    pub job: JobId,
    pub part: usize,
}

/// Returns a part of a text as it is sent: the number of parts, a line feed, the bytes. Empty where there is no such part.
pub(crate) fn encode_part(text: &str, part: usize) -> Vec<u8> {
    let mut parts = text.as_bytes().chunks(PART_BYTES);
    let count = parts.len();
    parts.nth(part).map_or(Vec::new(), |bytes| [format!("{count}\n").as_bytes(), bytes].concat())
}

/// Parses such a message: the number of parts, and the bytes.
fn decode_part(message: &[u8]) -> Option<(usize, &[u8])> {
    let split = message.iter().position(|byte| *byte == b'\n')?;
    let count = std::str::from_utf8(&message[..split]).ok()?.parse().ok()?;
    (1..=MAX_PARTS).contains(&count).then_some((count, &message[split + 1..]))
}

/// Asks for the text of a job as this worker; none if the coordinator does not lead that job now.
pub(crate) async fn fetch(client: &Client, worker: u32, job: JobId) -> Result<Option<String>> {
    let (mut text, mut part, mut count) = (Vec::new(), 0, 1);
    while part < count {
        let request = serde_json::to_vec(&TextRequest { job, part }).expect("plain values");
        let answer = client.request(format!("req.job.{worker}"), request.into()).await;
        let answer =
            answer.map_err(|error| Error::Network(format!("the job's text cannot be read: {error}")))?;
        let Some((parts, bytes)) = decode_part(&answer.payload) else { return Ok(None) };
        text.extend_from_slice(bytes);
        (part, count) = (part + 1, parts);
    }
    Ok(String::from_utf8(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_text_and_nothing_else_is_a_part() {
        for length in [1, PART_BYTES, PART_BYTES + 1, Descriptor::MOST_BYTES] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            let (mut read, mut part, mut count) = (Vec::new(), 0, 1);
            while part < count {
                let message = encode_part(&text, part);
                assert!(message.len() < crate::wire::MOST_BYTES);
                let (parts, bytes) = decode_part(&message).expect("a part");
                read.extend_from_slice(bytes);
                (part, count) = (part + 1, parts);
            }
            assert_eq!(read, text.as_bytes());
            assert!(encode_part(&text, count).is_empty() && encode_part(&text, usize::MAX).is_empty());
        }
        for message in [&b""[..], b"1", b"0\nx", b"-1\nx", b"129\nx", b"x\nx"] {
            assert!(decode_part(message).is_none(), "{message:?}");
        }
    }
}
