//! Documents that are posted to the address itself: calls of JSON-RPC.
//!
//! SEC: a call that changes something is sent once. When the connection breaks after its bytes may
//! have left, it cannot be told whether the server has done it, so only calls that are known to
//! read are sent again.

use std::io::{self, Read};

use super::Remote;
use super::exchange::{Exchange, Repeat};
use crate::error::Result;

impl Remote {
    /// Posts a JSON document to the address itself, and has `read` read the answer, which has at
    /// most `longest` bytes. Where `is_read` says that it changes nothing, it is sent again when
    /// the network fails, and then `read` is called again; otherwise only when nothing of it has
    /// been sent.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, refuses, or says more, and when `read` fails.
    pub fn post_json<T>(
        &self,
        document: &[u8],
        is_read: bool,
        longest: u64,
        mut read: impl FnMut(&mut dyn Read) -> io::Result<T>,
    ) -> Result<T> {
        let repeat = if is_read { Repeat::Always } else { Repeat::UnlessSent };
        let exchange = Exchange { of: None, method: "POST", path: "", body: document, longest, repeat };
        self.exchange(&exchange, &mut |response| read(&mut response.body))
    }
}
