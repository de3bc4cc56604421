//! A server as its clients see it, over HTTP/1.1, plain or with TLS, directly or through a SOCKS proxy. Connections stay open from
//! one request to the next.
//!
//! A server is not believed. What comes is checked: blocks against the digests, digests against the identity, the shape of
//! the database against what this machine can hold, all lengths against what was asked for, before anything is allocated.
//! Nothing it says is shown as it came. Redirects are not followed. A download that breaks off goes on where it was; a query is
//! repeated byte for byte. A response that comes slower than a minimum rate is given up, however short it is.

mod blocks;
mod catch_up;
mod claim;
mod contact;
mod exchange;
mod overlay;
mod post;
mod text;
mod transport;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use ureq::http::Uri;
use ureq::{Agent, Proxy};
use warpsmith_files::Token;

pub use self::catch_up::{CaughtUp, Cost, Weighed};
use self::claim::believable;
pub use self::contact::{Contact, Outage};
use self::exchange::Whole;
use self::overlay::Overlay;
use self::text::shown;
use crate::client::{Asked, Client, Fetched};
use crate::database::{Description, HEAD_BYTES};
use crate::error::{Error, Result};
use crate::memory;
use crate::params::Params;
use crate::two_server::Request;
use crate::wire::{self, Update, read_updates};

/// Where hints are asked for.
const HINTS: &str = "/v1/hints";
/// Where changes are asked for.
const UPDATES: &str = "/v1/updates/";
/// The longest answer with updates: one epoch may be long.
const LONGEST: u64 = 1 << 30;
/// Epochs and changes that one call takes at most, or a little more: beyond that it is cheaper to make new hints. A server that
/// always has more does not hold a client for ever.
const MOST_EPOCHS: u64 = 1 << 18;
const MOST_CHANGES: u64 = 1 << 20;
/// The most queries of one request that are believed.
const MOST_BATCH: u64 = 1 << 16;

/// A server.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Host and port.
    authority: String,
    /// Whether TLS is used.
    secure: bool,
    /// What comes before `/v1`.
    prefix: String,
    /// For hint makers that ask for one.
    token: Option<Token>,
    /// Whether keys may travel in clear.
    allows_plain: bool,
    /// Whether errors leave its path out.
    hides_path: bool,
    /// Whether somebody waits for each answer.
    fails_fast: bool,
    /// Whether it answers.
    contact: Arc<Contact>,
    /// What stands between, and its host and port.
    proxy: Option<(Proxy, String)>,
    /// Keeps the connections, from the first request on: or why there can be none.
    agent: Arc<OnceLock<std::result::Result<Agent, String>>>,
}

/// What a server has, and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The database's file.
    pub description: Description,
    /// The newest epoch.
    pub epoch: u64,
    /// The most queries of one request; 0 where it does not answer queries.
    pub batch: usize,
    /// What the entries of the newest epoch are the state of, in the words of the records' application, where they tell it. It is as the
    /// server sent it: to be parsed, never to be shown.
    pub head: Option<String>,
    /// Changes since the file, which a new client downloads too; 0 where it does not say.
    pub changes: u64,
}

impl Remote {
    /// A server by its address: `http://HOST[:PORT][/PATH]`, or `https://`.
    ///
    /// # Errors
    ///
    /// When it is not of that form.
    pub fn new(url: &str) -> Result<Remote> {
        let wrong = |reason: &str| Error::Remote { server: shown(url), reason: reason.to_owned() };
        let (secure, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(wrong("an address begins with http:// or https://")),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // Nothing of it may end a line of the request.
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
            return Err(wrong("there is no host in it"));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if secure { 443 } else { 80 };
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        let prefix = path.trim_end_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        let remote = Remote {
            authority,
            secure,
            prefix,
            token: None,
            allows_plain: false,
            hides_path: false,
            fails_fast: false,
            contact: Arc::default(),
            proxy: None,
            agent: Arc::default(),
        };
        if remote.url().parse::<Uri>().is_err() {
            return Err(wrong("it has a character that no address has"));
        }
        Ok(remote)
    }

    /// The same through a SOCKS proxy, such as Tor's: `socks5://HOST:PORT`. Names are resolved by the proxy, never here.
    ///
    /// # Errors
    ///
    /// When the proxy's address is not of that form.
    pub fn through(self, proxy: &str) -> Result<Remote> {
        let wrong = |reason: &str| Error::Remote { server: shown(proxy), reason: reason.to_owned() };
        let rest = proxy.strip_prefix("socks5://").or_else(|| proxy.strip_prefix("socks5h://"));
        let rest = rest.ok_or_else(|| wrong("a proxy is given as socks5://HOST:PORT"))?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains(['@', '/']) && port.parse::<u16>().is_ok()
        });
        // SEC: `socks5h` hands the proxy the name. With `socks5` the name would be looked up here, for all to see.
        let parsed = Proxy::new(&format!("socks5h://{authority}")).ok().filter(|_| has_port);
        let parsed = parsed.ok_or_else(|| wrong("a proxy is given as socks5://HOST:PORT"))?;
        Ok(Remote { proxy: Some((parsed, authority.to_owned())), agent: Arc::default(), ..self })
    }

    /// The same with a token, which goes along with requests for hints and with no other.
    #[must_use]
    pub fn with_token(mut self, token: Token) -> Remote {
        self.token = Some(token);
        self
    }

    /// The same, and keys may be sent to it in clear: whoever sees the network between learns them.
    #[must_use]
    pub fn allowing_plain_http(mut self) -> Remote {
        self.allows_plain = true;
        self
    }

    /// The same, and errors do not repeat the path of its address: it may be a key.
    #[must_use]
    pub fn hiding_path(mut self) -> Remote {
        self.hides_path = true;
        self
    }

    /// The same for callers that somebody waits for: an attempt to connect ends after four seconds, unless a proxy stands between,
    /// and no other begins two seconds after the first.
    #[must_use]
    pub fn failing_fast(self) -> Remote {
        Remote { fails_fast: true, agent: Arc::default(), ..self }
    }

    /// Whether it answers, also while a request is under way. Downloads of blocks do not count.
    pub fn contact(&self) -> Arc<Contact> {
        Arc::clone(&self.contact)
    }

    /// Whether nobody on the way can read what is sent: it is encrypted, or does not leave this machine.
    pub fn is_private(&self) -> bool {
        match &self.proxy {
            None => self.secure || is_here(&self.authority),
            // What is local is so to the proxy's machine. An onion service is reached encrypted, from the proxy on.
            Some((_, proxy)) => {
                let is_onion = host_of(&self.authority).to_ascii_lowercase().ends_with(".onion");
                self.secure || is_onion && is_here(proxy)
            }
        }
    }

    /// Its address, in full.
    fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.prefix)
    }

    /// An error of this server. Whatever it said is made fit to be shown here.
    fn failed(&self, reason: impl AsRef<str>) -> Error {
        let through = self.proxy.as_ref().map(|(_, proxy)| format!(" (through the proxy at {proxy})"));
        let mut server = self.url();
        if self.hides_path {
            server.truncate(server.len() - self.prefix.len());
        }
        server.push_str(&through.unwrap_or_default());
        Error::Remote { server, reason: shown(reason.as_ref()) }
    }

    /// What the server has.
    ///
    /// # Errors
    ///
    /// When it cannot be reached or says something else.
    pub fn offer(&self) -> Result<Offer> {
        let Whole { bytes, epoch, batch, head, changes } =
            self.ask("GET", "/v1/info", b"", HEAD_BYTES as u64)?;
        let description = Description::read(&self.authority, &bytes)?;
        believable(&description, memory::of_machine()).map_err(|reason| self.failed(reason))?;
        let batch = batch.unwrap_or(0).min(MOST_BATCH) as usize;
        let changes = changes.unwrap_or(0);
        Ok(Offer { epoch: epoch.unwrap_or(description.epoch), batch, head, changes, description })
    }

    /// Streams all entries as they are in the newest epoch, and says which that is. The changes are fetched first: to apply
    /// them to the stream is far less work than to hints.
    ///
    /// # Errors
    ///
    /// As for [`Remote::entries`].
    pub fn newest_entries(
        &self,
        description: &Description,
        push: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let size = description.params.entry_size();
        let mut overlay = Overlay::new(size);
        let (mut epoch, most) = (description.epoch, memory::of_machine() / 4);
        loop {
            let updates = self.updates(&description.params, epoch)?;
            if updates.is_empty() {
                break;
            }
            for update in &updates {
                overlay.add(update);
                epoch = update.number;
            }
            if overlay.bytes() > most {
                return Err(self.failed(format!(
                    "it sent changes that take {} bytes of memory, and has more; at most {most} are taken",
                    overlay.bytes()
                )));
            }
            if epoch - description.epoch > MOST_EPOCHS {
                return Err(self.failed(format!(
                    "it sent {} epochs of changes since its file, and has more; at most {MOST_EPOCHS} are taken",
                    epoch - description.epoch
                )));
            }
        }
        let mut at = 0;
        self.entries(description, &mut |bytes| {
            let part = at..at + bytes.len() as u64;
            at = part.end;
            if !overlay.reaches(&part) {
                return push(bytes);
            }
            let mut bytes = bytes.to_vec();
            overlay.apply(part.start, &mut bytes);
            push(&bytes)
        })?;
        Ok(epoch)
    }

    /// Changes after an epoch: as many epochs as the server sends at once; none when there are no more.
    ///
    /// # Errors
    ///
    /// When the server does not know the epoch, or cannot be reached.
    pub fn updates(&self, params: &Params, epoch: u64) -> Result<Vec<Update>> {
        Ok(self.updates_and_rest(params, epoch)?.0)
    }

    /// The same, and how many changes there are in all after that epoch, if the server says so.
    fn updates_and_rest(&self, params: &Params, epoch: u64) -> Result<(Vec<Update>, Option<u64>)> {
        let longest = LONGEST.min(memory::of_machine() / 8);
        let answer = self.ask("GET", &format!("{UPDATES}{epoch}"), b"", longest)?;
        let updates = read_updates(params, &answer.bytes)?;
        for (update, next) in updates.iter().zip(epoch + 1..) {
            if update.number != next {
                return Err(self.failed(format!("it sent update {} instead of {next}", update.number)));
            }
        }
        Ok((updates, answer.changes))
    }

    /// Hints of a database from a hint maker, as [`crate::two_server::read`] takes them.
    ///
    /// # Errors
    ///
    /// When it cannot be reached or refuses, when the key would travel in clear and that is not allowed, or when the hints
    /// take more memory than this machine has.
    pub fn hints(&self, request: &Request, database: &Params) -> Result<Vec<u8>> {
        if !self.is_private() && !self.allows_plain {
            return Err(self.failed(
                "the key would travel in clear, and whoever sees it and the queries can read them; use https://",
            ));
        }
        let length = request.answer_bytes(database)?;
        // The answer, and the hints read from it.
        database.check_memory(length.saturating_mul(2), memory::of_machine())?;
        Ok(self.ask("POST", HINTS, &request.to_bytes(), length)?.bytes)
    }

    /// Brings a client's hints to the server's newest epoch.
    ///
    /// # Errors
    ///
    /// When queries wait for answers, or the updates cannot be had, or there is no end to them: what came until then is kept.
    pub fn synchronise(&self, client: &mut Client) -> Result<()> {
        // To add so many changes to the hints is as much work as to make them several times over.
        let most = MOST_CHANGES.max(16 * u64::from(client.params().blocks()));
        self.synchronise_within(client, MOST_EPOCHS, most)
    }

    fn synchronise_within(&self, client: &mut Client, most_epochs: u64, most: u64) -> Result<()> {
        let (mut epochs, mut changes) = (0, 0);
        loop {
            let updates = self.updates(client.params(), client.version().epoch)?;
            if updates.is_empty() {
                return Ok(());
            }
            for update in &updates {
                client.update(update)?;
                epochs += 1;
                changes += update.indices.len() as u64;
            }
            if epochs > most_epochs || changes > most {
                return Err(self.failed(format!(
                    "it sent {epochs} epochs with {changes} changes, and may have more (at most {most_epochs} epochs and \
                     {most} changes are taken at once); make a state with new hints, or run this again to go on"
                )));
            }
        }
    }

    /// Sends what was asked and takes the answers. When it fails the queries still wait, and [`Client::resend`] gives them
    /// again.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, refuses, or answers something else.
    pub fn fetch(&self, client: &mut Client, asked: &Asked) -> Result<Vec<Result<Fetched>>> {
        let longest = wire::HEAD_BYTES + asked.len() * client.params().answer_bytes();
        let answers = self.ask("POST", "/v1/query", &asked.body, longest as u64)?;
        client.receive(asked, &answers.bytes)
    }
}

/// The host of a host and port.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Whether a host and port are of this machine.
fn is_here(authority: &str) -> bool {
    let host = host_of(authority);
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
