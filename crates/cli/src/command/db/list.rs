//! `warpsmith db list`: every address of a database as text, in the form that `db build` reads.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use warpsmith::chain::AddressKind;
use warpsmith::store::Database;
use warpsmith_console::exit::{ExitStatus, Failure};
use warpsmith_console::stdout::{NoSummary, Stdout};

use super::failed;

#[derive(Args)]
pub(super) struct List {
    /// The database
    #[arg(value_name = "DB")]
    database: PathBuf,

    /// Only these kinds of addresses, as `db info` names them: p2pkh,hash160
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = kind_names(),
        hide_possible_values = true)]
    kinds: Vec<AddressKind>,

    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

/// The kinds by their names.
fn kind_names() -> impl TypedValueParser<Value = AddressKind> {
    PossibleValuesParser::new(AddressKind::all().map(AddressKind::name))
        .map(|name| AddressKind::find(&name).expect("one of the names"))
}

#[derive(Serialize)]
struct AddressLine {
    event: &'static str,
    address: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
}

impl List {
    pub fn run(&self, stdout: &mut Stdout) -> Result<ExitStatus, Failure> {
        let database = Database::open(&self.database).map_err(failed)?;
        let mut shown = stdout.buffered();
        let mut listed = database.records_of(&self.kinds).try_for_each(|record| {
            let record = record.map_err(failed)?;
            let (address, amount) = (record.text(), record.amount.map(|amount| amount.to_string()));
            if self.json {
                let kind = record.kind.name();
                return shown.add_json(&AddressLine { event: "address", address, kind, amount });
            }
            let amount = amount.map_or(String::new(), |amount| format!("\t{amount}"));
            shown.add(format!("{address}{amount}\n").as_bytes())
        });
        // What was read before a place that is damaged is right.
        if !matches!(listed, Err(Failure::ReaderGone)) {
            listed = shown.flush().and(listed);
        }
        listed?;
        stdout.done(self.json, &NoSummary {})?;
        Ok(ExitStatus::Done)
    }
}
