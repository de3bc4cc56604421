//! How an entry is shown.

use serde::Serialize;
use warpsmith_eth_state::look_up::{Answer, Query};

/// A result.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct EntryLine {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) found: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coins: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
}

impl EntryLine {
    /// What a database whose values are text or not says about what was asked for.
    pub(super) fn new(query: &Query, answer: &Answer, is_text: bool) -> EntryLine {
        let (index, key) = match query {
            Query::Index(index) => (Some(*index), None),
            Query::Key { text, .. } => (None, Some(text.clone())),
        };
        let mut line = EntryLine {
            event: "entry",
            index,
            key,
            found: index.is_none().then_some(answer.is_there()),
            value: None,
            text: None,
            amount: None,
            coins: None,
            balance: None,
            nonce: None,
            code: None,
        };
        match answer {
            Answer::Entry(value) => line.value = Some(const_hex::encode(value)),
            Answer::Value(value) => match value.as_deref().map(std::str::from_utf8) {
                Some(Ok(text)) if is_text => line.text = Some(text.to_owned()),
                _ => line.value = value.as_ref().map(const_hex::encode),
            },
            Answer::Address(amount) => line.amount = amount.flatten().map(|amount| amount.to_string()),
            Answer::Coins(coins) => {
                line.amount = coins.map(|(satoshi, _)| satoshi.to_string());
                line.coins = coins.map(|(_, coins)| coins);
            }
            Answer::Account(account) => {
                line.balance = account.map(|account| account.balance.to_string());
                line.nonce = account.map(|account| account.nonce);
                line.code = account.map(|account| account.code);
            }
        }
        line
    }

    /// The same for people.
    pub(super) fn for_people(&self) -> String {
        let name = self.key.clone().unwrap_or_else(|| self.index.unwrap_or_default().to_string());
        let says = match self {
            EntryLine { found: Some(false), .. } => "not there".to_owned(),
            EntryLine { value: Some(value), .. } => value.clone(),
            // Whatever a server has it may not move the cursor.
            EntryLine { text: Some(text), .. } => harmless(text),
            EntryLine { balance: Some(balance), nonce: Some(nonce), code: Some(code), .. } => {
                let code = if *code == 0 { String::new() } else { format!(", code {code}") };
                format!("balance {balance}, nonce {nonce}{code}")
            }
            EntryLine { amount: Some(amount), coins: Some(coins), .. } => {
                format!("found, {amount} in {coins} {}", if *coins == 1 { "coin" } else { "coins" })
            }
            EntryLine { amount: Some(amount), .. } => format!("found, {amount}"),
            _ => "found".to_owned(),
        };
        format!("{name}  {says}\n")
    }
}

/// All of a text, without what a terminal would obey or that is not seen.
fn harmless(text: &str) -> String {
    let shown = |character: char| match character {
        '\'' | '"' | '\\' => character.to_string(),
        _ => character.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}
