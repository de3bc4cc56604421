//! An encrypted key in a result, in the form of its wallets or for an age recipient.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use warpsmith_console::stderr::warn;

/// An encrypted key, as results have it.
#[derive(Clone, Serialize)]
pub(crate) struct Encrypted {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// How to use it.
    #[serde(rename = "use")]
    how: &'static str,
    /// Where the document shall go, and under which name.
    #[serde(skip)]
    place: Option<PathBuf>,
}

/// What reads a format.
fn how(format: &str) -> &'static str {
    match format {
        "ncryptsec" => "a Nostr client that takes ncryptsec (NIP-49) asks for the password",
        "web3" => "`cast send --keystore FILE`, geth and MetaMask (import a JSON file) ask for the password",
        "bip38" => "a wallet that takes BIP-38 keys asks for the password; choose the type of address there",
        _ => "`age -d -i IDENTITY FILE | warpsmith verify -` reads it",
    }
}

impl Encrypted {
    /// A text in this format.
    pub fn text(format: &'static str, text: String) -> Encrypted {
        Encrypted { format, text: Some(text), document: None, file: None, how: how(format), place: None }
    }

    /// A Web3 keystore, for a file of its own in this place if there is one.
    pub fn keystore(document: Value, place: Option<PathBuf>) -> Encrypted {
        let how = how("web3");
        Encrypted { format: "web3", text: None, document: Some(document), file: None, how, place }
    }

    /// How to use it.
    pub fn how(&self) -> &'static str {
        self.how
    }

    /// A label and a text for people.
    pub fn told(&self) -> (&'static str, String) {
        let label = if self.format == "web3" { "keystore" } else { self.format };
        let text = match (&self.text, &self.document, &self.file) {
            // An armored file has lines of its own.
            (Some(text), ..) if self.format == "age" => format!("for the recipient\n{}", text.trim_end()),
            (Some(text), ..) | (.., Some(text)) => text.clone(),
            (_, Some(document), _) => document.to_string(),
            _ => String::new(),
        };
        (label, text)
    }

    /// With its document in a file of its own, where it gets one. If that cannot be written the document stays in the result,
    /// which is as safe.
    pub fn placed(mut self) -> Encrypted {
        let (Some(place), Some(document)) = (self.place.take(), &self.document) else { return self };
        let write = || {
            let mut file = warpsmith_files::create(&place).map_err(|error| error.to_string())?;
            let written = file.write_all(document.to_string().as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|error| {
                // Half a keystore is none.
                let _ = fs::remove_file(&place);
                error.to_string()
            })
        };
        match write() {
            Ok(()) => (self.document, self.file) = (None, Some(place.display().to_string())),
            Err(why) => warn(&format!("--keystore: {why}; the encrypted key is in the result instead")),
        }
        self
    }
}
