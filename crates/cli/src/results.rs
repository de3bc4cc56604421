//! Where results go: stdout, or a file and then stdout; as they are, or encrypted first.
//!
//! With an output file the secret goes there alone, and stdout gets a copy of the record that names the file instead. Encrypting
//! takes memory and time on purpose, so it is done on a thread of its own (`sealing`), while the search goes on; results are
//! delivered in the order they were found, and all of them before the command ends.

use std::collections::HashMap;
use std::path::Path;

use warpsmith::chain::Birthday;
use warpsmith_console::exit::Failure;
use warpsmith_console::stdout::Stdout;
use zeroize::Zeroizing;

use crate::encrypted::Encrypted;
use crate::encryption::Encryption;
use crate::notify::Notifier;
use crate::output::Output;
use crate::qr::{self, Qr};
use crate::record::{Deliverable, Telling};
use crate::sealing::Sealer;

/// Where results go.
pub(crate) struct Results {
    stdout: Stdout,
    file: Option<Output>,
    json: bool,
    sealer: Option<Sealer>,
    qr: Option<Qr>,
    notifier: Option<Notifier>,
    /// Whether results for people say which pattern they are of.
    names_patterns: bool,
    /// What was asked for instead of these addresses.
    asked: HashMap<String, String>,
    /// Whether people get a line of each result, and the last in full at the end.
    is_brief: bool,
    /// The result of which people got a line alone.
    best: Option<Deliverable>,
    /// From when on wallets look for payments to recovered keys.
    birthday: Birthday,
    /// How many were taken.
    taken: u64,
    /// How many of them were delivered.
    published: u64,
}

impl Results {
    /// Makes sure that a result can be delivered before any is searched for.
    pub fn open(
        stdout: Stdout,
        output: Option<&Path>,
        json: bool,
        encryption: Option<Encryption>,
    ) -> Result<Results, Failure> {
        let file = output.map(Output::open).transpose()?;
        if file.is_none() {
            stdout.require_open()?;
        }
        let sealer = encryption.map(Sealer::start).transpose()?;
        Ok(Results {
            stdout,
            file,
            json,
            sealer,
            qr: None,
            notifier: None,
            names_patterns: false,
            asked: HashMap::new(),
            is_brief: false,
            best: None,
            birthday: Birthday::Unknown,
            taken: 0,
            published: 0,
        })
    }

    /// With a code below each result on stdout.
    pub fn with_codes(self, qr: Option<Qr>) -> Results {
        Results { qr, ..self }
    }

    /// Has a command run for each result.
    pub fn notify(&mut self, command: Option<&str>) {
        self.notifier = command.map(Notifier::new);
    }

    /// Has results for people say which pattern they are of, or not.
    pub fn name_patterns(&mut self, whether: bool) {
        self.names_patterns = whether;
    }

    /// Has each improvement take one line for people, and the best be shown in full at the end.
    pub fn keep_brief(&mut self, whether: bool) {
        self.is_brief = whether && !self.json && self.sealer.is_none();
    }

    /// Has findings answer with what was asked for, by the addresses they are found as.
    pub fn answer_with(&mut self, asked: HashMap<String, String>) {
        self.asked = asked;
    }

    /// Returns what was asked for where this address is found.
    pub fn answer<'s>(&'s self, address: &'s str) -> &'s str {
        self.asked.get(address).map_or(address, String::as_str)
    }

    /// Has recovered keys say from when on wallets look for payments to them.
    pub fn born(&mut self, birthday: Birthday) {
        self.birthday = birthday;
    }

    /// stdout, for what is not a result.
    pub fn stdout(&mut self) -> &mut Stdout {
        &mut self.stdout
    }

    /// How many were taken, delivered or about to be.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Delivers what was encrypted meanwhile, and ends a search whose next result could not be kept, while everything found is
    /// safe.
    pub fn keep_ready(&mut self) -> Result<(), Failure> {
        self.publish_sealed()?;
        let Some(file) = &self.file else { return Ok(()) };
        file.make_room().map_err(|why| {
            Failure::Other(format!(
                "--output {}: {why}; the search was stopped before it found what could not be kept, and all {} results \
                 told are safe. Make room and start again",
                file.name(),
                self.published
            ))
        })
    }

    /// Delivers results that came together, or has them encrypted to be delivered soon.
    pub fn publish(&mut self, mut found: Vec<Deliverable>) -> Result<(), Failure> {
        for found in &mut found {
            if let Deliverable::Finding(finding) = found
                && let Some(asked) = self.asked.get(&finding.address)
            {
                finding.asked = Some(asked.clone());
            }
        }
        self.taken += found.len() as u64;
        let birthday = self.birthday;
        let found = found.into_iter().map(|found| match found {
            Deliverable::Finding(found) if birthday != Birthday::Unknown => {
                Deliverable::Finding(found.born(birthday))
            }
            found => found,
        });
        let mut found: Vec<Deliverable> = found.collect();
        if self.sealer.is_none() {
            self.deliver(&found.iter().map(|found| (found, None)).collect::<Vec<_>>())?;
            self.best = found.pop().filter(|last| self.is_brief && last.is_brief()).or(self.best.take());
            return Ok(());
        }
        for next in found {
            // Where the queue is full, whoever found this waits: results that cannot be encrypted so fast are no use.
            while let Some(sealer) = self.sealer.as_mut().filter(|sealer| !sealer.has_room()) {
                let sealed = sealer.next()?;
                self.deliver_sealed(sealed)?;
            }
            if let Some(sealer) = &mut self.sealer {
                sealer.take(next)?;
            }
        }
        self.publish_sealed()
    }

    /// Waits until all results that were taken are delivered.
    pub fn flush(&mut self) -> Result<(), Failure> {
        while let Some(sealer) = self.sealer.as_mut().filter(|sealer| sealer.is_at_work()) {
            let sealed = sealer.next()?;
            self.deliver_sealed(sealed)?;
        }
        Ok(())
    }

    /// Delivers what is left, and shows the best in full. To be called at every end of a search.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.flush()?;
        let Some(best) = self.best.take() else { return Ok(()) };
        let name = self.file.as_ref().map(Output::name);
        let telling = name.as_deref().map_or(Telling::Plain, |file| Telling::Without { file });
        let text = best.text(false, telling, self.names_patterns);
        self.stdout.show(b"\n")?;
        self.stdout.show(&text)?;
        self.drawn(&best).map_or(Ok(()), |code| self.stdout.show(code.as_bytes()))
    }

    /// The code below a result.
    fn drawn(&self, found: &Deliverable) -> Option<Zeroizing<String>> {
        match self.qr? {
            Qr::Address => qr::draw(found.address()),
            Qr::Secret => qr::draw(found.export()?),
        }
    }

    fn publish_sealed(&mut self) -> Result<(), Failure> {
        while let Some(sealed) = self.sealer.as_mut().and_then(Sealer::ready) {
            self.deliver_sealed(sealed?)?;
        }
        Ok(())
    }

    /// Delivers one that was encrypted, its keystore file first where it gets one.
    fn deliver_sealed(&mut self, (found, encrypted): (Deliverable, Encrypted)) -> Result<(), Failure> {
        let encrypted = encrypted.placed();
        self.deliver(&[(&found, Some(&encrypted))])
    }

    /// Delivers so many results at once.
    fn deliver(&mut self, found: &[(&Deliverable, Option<&Encrypted>)]) -> Result<(), Failure> {
        let (json, first, named) = (self.json, self.published == 0, self.names_patterns);
        let brief = self.is_brief && found.iter().all(|(found, _)| found.is_brief());
        let codes: Vec<_> = found.iter().map(|(found, _)| self.drawn(found).filter(|_| !brief)).collect();
        let block = |separate: bool, file: Option<&str>, to_stdout: bool| {
            let text = |(found, encrypted): &(&Deliverable, Option<&Encrypted>)| {
                if brief && to_stdout {
                    return found.brief(file.is_none(), named);
                }
                let whole = encrypted.map_or(Telling::Plain, Telling::Encrypted);
                found.text(json, file.map_or(whole, |file| Telling::Without { file }), named)
            };
            let texts: Vec<Zeroizing<Vec<u8>>> = found.iter().map(text).collect();
            let drawn: usize = codes.iter().flatten().map(|code| code.len()).sum();
            let size = drawn + texts.iter().map(|text| text.len() + 1).sum::<usize>();
            let mut block = Zeroizing::new(Vec::with_capacity(size));
            for (at, text) in texts.iter().enumerate() {
                // A blank line between results for people.
                if !(json || brief && to_stdout) && (at > 0 || separate) {
                    block.push(b'\n');
                }
                block.extend_from_slice(text);
                if let Some(code) = codes[at].as_ref().filter(|_| to_stdout) {
                    block.extend_from_slice(code.as_bytes());
                }
            }
            block
        };
        match &mut self.file {
            None => self.stdout.deliver(&block(!first, None, true))?,
            Some(file) => {
                file.append(&block(false, None, false), !json)?;
                let name = file.name();
                let told = self.stdout.show(&block(!first, Some(&name), true));
                told.map_err(|failure| match failure {
                    Failure::Other(why) => {
                        Failure::Other(format!("{why}; the result itself is safe in {name}"))
                    }
                    other => other,
                })?;
            }
        }
        self.published += found.len() as u64;
        if let Some(notifier) = &mut self.notifier {
            found.iter().for_each(|(found, _)| notifier.notify(found));
        }
        Ok(())
    }
}
