//! The folder of a fleet: keys, certificate, the server's configuration, workers, jobs.

use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use warpsmith_text::json_mistake;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// What an invitation begins with.
const HEAD: &str = "warpsmith-fleet-1.";

/// The most workers of a fleet whose users are listed in the server's file.
const MOST_WORKERS: usize = 100_000;

/// A fleet's folder.
#[derive(Clone, Debug)]
pub struct Home {
    folder: PathBuf,
    about: About,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct About {
    /// Address and port that the server listens on.
    listen: String,
    /// Address and port that workers connect to.
    server: String,
    /// SHA-256 of the certificate, hex.
    fingerprint: String,
    /// The coordinator's public key.
    coordinator: String,
    workers: Vec<Member>,
    /// Numbers of workers that were put out: nobody gets them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<u32>,
}

/// A worker that was invited.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its number.
    pub id: u32,
    /// What the owner of the fleet calls it.
    pub name: String,
    /// Its public key.
    pub key: String,
    /// What an hour of it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
}

/// What lets a worker in: one line of text. SEC: it holds the worker's key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Invitation {
    /// Where the server is.
    pub server: String,
    /// SHA-256 of its certificate, hex.
    pub fingerprint: String,
    /// The worker's number.
    pub id: u32,
    /// The worker's name.
    pub name: String,
    /// Its own key.
    pub seed: Zeroizing<String>,
}

/// SEC: the key is not shown.
impl std::fmt::Debug for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invitation")
            .field("server", &self.server)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Invitation {
    /// The line.
    pub fn text(&self) -> Zeroizing<String> {
        Self::encoded(&Zeroizing::new(serde_json::to_vec(self).expect("plain values")))
    }

    /// The line of an invitation's JSON.
    pub fn encoded(json: &[u8]) -> Zeroizing<String> {
        Zeroizing::new(format!("{HEAD}{}", URL_SAFE_NO_PAD.encode(json)))
    }

    /// Whether a text is an invitation, or was one before a part of it was lost.
    pub fn is_one(text: &str) -> bool {
        text.trim().starts_with("warpsmith-fleet-")
    }

    /// Reads the line, and checks all of it.
    pub fn read(text: &str) -> Result<Invitation> {
        // SEC: nothing of it is repeated.
        let bad = || {
            Error::Usage(if Invitation::is_one(text) {
                format!(
                    "the invitation is incomplete or was changed ({} characters): copy the whole line that `warpsmith fleet invite` \
                     printed",
                    text.trim().chars().count()
                )
            } else {
                format!(
                    "this is no invitation: expected a single line that begins with {HEAD}, as `warpsmith fleet invite` prints it"
                )
            })
        };
        let body = text.trim().strip_prefix(HEAD).ok_or_else(bad)?;
        let json = Zeroizing::new(URL_SAFE_NO_PAD.decode(body).map_err(|_| bad())?);
        let read: Invitation = serde_json::from_slice(&json).map_err(|_| bad())?;
        let is_print =
            read.fingerprint.len() == 64 && read.fingerprint.bytes().all(|b| b.is_ascii_hexdigit());
        let is_whole = is_print && is_name(&read.name) && parse_server(&read.server).is_ok();
        if is_whole && KeyPair::from_seed(&read.seed).is_ok() { Ok(read) } else { Err(bad()) }
    }
}

/// A key pair of NATS, by the operating system's randomness alone.
fn key_pair() -> Result<(String, Zeroizing<String>)> {
    let mut seed = Zeroizing::new([0; 32]);
    warpsmith_entropy::fill(&mut *seed)?;
    let pair = KeyPair::new_from_raw(KeyPairType::User, *seed).map_err(|e| Error::Network(e.to_string()))?;
    let text = Zeroizing::new(pair.seed().map_err(|e| Error::Network(e.to_string()))?);
    Ok((pair.public_key(), text))
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    warpsmith_files::replace(path, 0o600, |file| file.write_all(bytes))?;
    Ok(())
}

/// Whether a text is a name: letters, digits and - alone.
fn is_name(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Parses HOST:PORT; the port may be left out. An IPv6 address is in brackets.
pub fn parse_server(text: &str) -> Result<(String, u16)> {
    let bad = || {
        Error::Usage(format!(
            "'{}' is no address: give HOST:PORT, as 203.0.113.7:4222 or [2001:db8::7]:4222",
            text.escape_debug()
        ))
    };
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| bad())?),
        _ => (text, 4222),
    };
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        }
    };
    if is_host { Ok((host.to_owned(), port)) } else { Err(bad()) }
}

/// The place of a worker in the list.
fn find(about: &About, name: &str) -> Result<usize> {
    let at = about.workers.iter().position(|member| member.name == name);
    at.ok_or_else(|| {
        Error::Usage(format!(
            "no worker is named '{}'; `warpsmith fleet status` lists those that were heard of",
            name.escape_debug()
        ))
    })
}

/// The IP address of a host; none if it is a name.
fn ip(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

impl Home {
    /// Makes a fleet in a folder that holds none. Workers connect to where its server listens.
    pub fn init(folder: &Path, listen: &str) -> Result<Home> {
        Home::init_at(folder, listen, None)
    }

    /// Makes a fleet whose workers connect to another address than its server listens on: behind a NAT, or where the server
    /// listens on all addresses.
    pub fn init_at(folder: &Path, listen: &str, address: Option<&str>) -> Result<Home> {
        let (listen_host, listen_port) = parse_server(listen)?;
        let (host, port) = match address {
            Some(address) => parse_server(address)?,
            None => (listen_host.clone(), listen_port),
        };
        if ip(&host).is_some_and(|ip| ip.is_unspecified()) {
            return Err(Error::NoAddress { host, port });
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::io(folder))?;
        let about_path = folder.join("fleet.json");
        if about_path.exists() {
            return Err(Error::Usage(format!(
                "{} holds a fleet already; invite workers to it, or name another folder",
                folder.display()
            )));
        }
        for name in ["jobs", "server"] {
            let path = folder.join(name);
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(Error::io(&path))?;
        }
        let made = rcgen::generate_simple_self_signed(vec![host.trim_matches(['[', ']']).to_owned()])
            .map_err(|error| Error::Network(format!("no certificate could be made: {error}")))?;
        let key = Zeroizing::new(made.signing_key.serialize_pem());
        write_private(&folder.join("server/key.pem"), key.as_bytes())?;
        write_private(&folder.join("server/cert.pem"), made.cert.pem().as_bytes())?;
        let fingerprint = const_hex::encode(Sha256::digest(made.cert.der()));
        let (coordinator, seed) = key_pair()?;
        write_private(&folder.join("coordinator.seed"), seed.as_bytes())?;
        let about = About {
            listen: format!("{listen_host}:{listen_port}"),
            server: format!("{host}:{port}"),
            fingerprint,
            coordinator,
            workers: Vec::new(),
            removed: Vec::new(),
        };
        let home = Home { folder: folder.to_owned(), about };
        home.save()?;
        Ok(home)
    }

    /// The fleet of a folder.
    pub fn open(folder: &Path) -> Result<Home> {
        let path = folder.join("fleet.json");
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::Usage(format!(
                "{} holds no fleet ({error}); make one with `warpsmith fleet init {}`",
                folder.display(),
                folder.display()
            ))
        })?;
        let about = serde_json::from_str(&text)
            .map_err(|error| Error::corrupt(&path, json_mistake(&error.to_string())))?;
        Ok(Home { folder: folder.to_owned(), about })
    }

    /// Writes what is known, and the server's configuration of it.
    fn save(&self) -> Result<()> {
        write_private(&self.config(), self.configuration().as_bytes())?;
        let text = serde_json::to_string_pretty(&self.about).expect("plain values");
        write_private(&self.folder.join("fleet.json"), text.as_bytes())
    }

    /// Lets another worker in. The server must read its configuration again.
    pub fn invite(&mut self, name: &str) -> Result<Invitation> {
        if !is_name(name) {
            return Err(Error::Usage(format!(
                "'{}' is no name for a worker: 1 to 40 letters, digits and hyphens",
                name.escape_debug()
            )));
        }
        let (key, seed) = key_pair()?;
        let id = self.change(|about| {
            if about.workers.iter().any(|member| member.name == name) {
                return Err(Error::Usage(format!("a worker is named {name} already; choose another name")));
            }
            if about.workers.len() >= MOST_WORKERS {
                return Err(Error::Usage(format!("a fleet has at most {MOST_WORKERS} workers")));
            }
            let known = about.workers.iter().map(|member| member.id).chain(about.removed.iter().copied());
            let id = known.max().unwrap_or(0) + 1;
            about.workers.push(Member { id, name: name.to_owned(), key, price: None });
            Ok(id)
        })?;
        let About { server, fingerprint, .. } = self.about.clone();
        Ok(Invitation { server, fingerprint, id, name: name.to_owned(), seed })
    }

    /// Changes what is known of the fleet as its folder has it now, and writes it. Other commands that change it wait until then.
    fn change<T>(&mut self, change: impl FnOnce(&mut About) -> Result<T>) -> Result<T> {
        let path = self.folder.join("fleet.lock");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        // The lock ends with the file's descriptor, whatever happens to this process.
        let lock = options.open(&path).map_err(Error::io(&path))?;
        lock.lock().map_err(Error::io(&path))?;
        let mut about = Home::open(&self.folder)?.about;
        let outcome = change(&mut about)?;
        self.about = about;
        self.save()?;
        Ok(outcome)
    }

    /// Puts a worker out: its key is no key any more. The server must read its configuration again. What it did counts.
    pub fn remove(&mut self, name: &str) -> Result<u32> {
        self.change(|about| {
            let member = about.workers.remove(find(about, name)?);
            about.removed.push(member.id);
            Ok(member.id)
        })
    }

    /// Says what an hour of a worker costs.
    pub fn set_price(&mut self, name: &str, price: f64) -> Result<()> {
        self.change(|about| {
            let at = find(about, name)?;
            about.workers[at].price = Some(price);
            Ok(())
        })
    }

    /// Numbers of workers that were put out.
    pub fn removed(&self) -> &[u32] {
        &self.about.removed
    }

    /// When the list of workers was last changed.
    pub fn changed(&self) -> Option<std::time::SystemTime> {
        std::fs::metadata(self.folder.join("fleet.json")).and_then(|about| about.modified()).ok()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where jobs are.
    pub fn jobs(&self) -> PathBuf {
        self.folder.join("jobs")
    }

    /// The server's configuration.
    pub fn config(&self) -> PathBuf {
        self.folder.join("server/nats-server.conf")
    }

    /// Where the server writes its process number.
    pub fn pid_file(&self) -> PathBuf {
        self.folder.join("server/pid")
    }

    /// Address and port that workers connect to.
    pub fn server(&self) -> &str {
        &self.about.server
    }

    /// Address and port that the server listens on.
    pub fn listen(&self) -> &str {
        &self.about.listen
    }

    /// Whether the server listens where other machines can reach it.
    pub fn is_exposed(&self) -> bool {
        let host = parse_server(&self.about.listen).map(|(host, _)| host).unwrap_or_default();
        host != "localhost" && !ip(&host).is_some_and(|ip| ip.is_loopback())
    }

    /// File with the workers that were caught cheating.
    pub fn blocklist(&self) -> PathBuf {
        self.folder.join("blocklist")
    }

    /// SHA-256 of the server's certificate, hex.
    pub fn fingerprint(&self) -> &str {
        &self.about.fingerprint
    }

    /// Workers that were invited.
    pub fn workers(&self) -> &[Member] {
        &self.about.workers
    }

    /// The coordinator's key. SEC.
    pub fn seed(&self) -> Result<Zeroizing<String>> {
        let path = self.folder.join("coordinator.seed");
        let bytes = warpsmith_files::read_secret(&path, 256)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| Error::corrupt(&path, "it is no key"))?;
        Ok(Zeroizing::new(text.trim().to_owned()))
    }

    /// Configuration of the server: TLS alone, and each worker its own subjects alone.
    ///
    /// SEC: a worker chooses the reply subject of what it publishes, and the server does not check that. So everything that answers
    /// a worker's subjects must look where it answers to. The coordinator does; JetStream does not, and there is none here.
    fn configuration(&self) -> String {
        let path = |name: &str| {
            let folder = std::path::absolute(self.folder.join("server")).unwrap_or_default();
            serde_json::to_string(&folder.join(name)).expect("a path is text")
        };
        let mut text = format!(
            "# Written by `warpsmith fleet`; `fleet invite` writes it again.\n\
             listen: \"{}\"\n\
             tls {{ cert_file: {}, key_file: {}, timeout: 10 }}\n\
             pid_file: {}\n\
             max_payload: 65536\n\
             max_connections: 200000\n\
             write_deadline: \"10s\"\n\
             authorization {{\n  timeout: 10\n  \
             default_permissions: {{ publish: {{ deny: \">\" }}, subscribe: {{ deny: \">\" }} }}\n  users: [\n    \
             {{ nkey: {}, permissions: {{ publish: \">\", subscribe: \">\" }} }}\n",
            self.about.listen,
            path("cert.pem"),
            path("key.pem"),
            path("pid"),
            self.about.coordinator
        );
        for Member { id, name, key, .. } in &self.about.workers {
            text += &format!(
                "    {{ nkey: {key}, permissions: {{ publish: {{ allow: [\"req.get.{id}\", \"req.put.{id}\", \
                 \"req.job.{id}\"] }}, subscribe: {{ allow: [\"_INBOX_{id}.>\"] }} }} }} # {name}\n"
            );
        }
        text + "  ]\n}\n"
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_is_made_once_and_its_files_are_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fleet");
        let mut home = Home::init(&path, "127.0.0.1:4999").expect("made");
        assert!(Home::init(&path, "127.0.0.1:4999").unwrap_err().to_string().contains("already"));
        let invitation = home.invite("rig-1").expect("invited");
        assert!(home.invite("rig-1").unwrap_err().to_string().contains("already"));
        assert!(home.invite("../x").unwrap_err().to_string().contains("letters"));
        let read = Invitation::read(&invitation.text()).expect("itself");
        assert_eq!((read.id, read.server.as_str(), &read.seed), (1, "127.0.0.1:4999", &invitation.seed));
        assert!(!format!("{invitation:?}").contains(invitation.seed.as_str()));
        for name in ["fleet.json", "coordinator.seed", "server/key.pem", "server/nats-server.conf"] {
            let file = path.join(name);
            assert_eq!(
                std::fs::metadata(&file).expect("there").permissions().mode() & 0o777,
                0o600,
                "{name}"
            );
            let text = std::fs::read_to_string(&file).expect("text");
            assert!(!text.contains(invitation.seed.as_str()), "{name} does not have the worker's key");
        }
        assert_eq!(Home::open(&path).expect("opened").workers().len(), 1);
        // Commands that began with the same list lose nothing of each other.
        let mut others = [Home::open(&path).expect("opened"), Home::open(&path).expect("opened")];
        assert_eq!(others[0].invite("rig-8").expect("invited").id, 2);
        assert_eq!(others[1].invite("rig-9").expect("invited").id, 3);
        assert_eq!(others[0].remove("rig-9").expect("known"), 3);
        assert_eq!(others[1].remove("rig-8").expect("known"), 2);
        // Put out, it is in no configuration any more, and its number is nobody's.
        let key = home.workers()[0].key.clone();
        let config = || std::fs::read_to_string(path.join("server/nats-server.conf")).expect("text");
        assert!(config().contains(&key));
        home.set_price("rig-1", 0.5).expect("known");
        assert_eq!(Home::open(&path).expect("opened").workers()[0].price, Some(0.5));
        assert!(home.remove("rig-2").unwrap_err().to_string().contains("rig-2"));
        assert_eq!(home.remove("rig-1").expect("known"), 1);
        assert!(!config().contains(&key));
        assert_eq!(home.invite("rig-1").expect("invited").id, 4);
        assert_eq!(Home::open(&path).expect("opened").removed(), [3, 2, 1]);
        assert!(Home::open(folder.path()).unwrap_err().to_string().contains("fleet init"));
    }

    #[test]
    fn what_is_no_invitation_and_no_address_is_told_without_repeating_it() {
        for text in ["", "hello", "warpsmith-fleet-1.", "warpsmith-fleet-1.!!!", "warpsmith-fleet-1.e30"] {
            let why = Invitation::read(text).unwrap_err().to_string();
            assert!(why.contains("fleet invite") && !why.contains("hello"));
            assert_eq!(why.contains("incomplete"), text.starts_with("warpsmith"), "{why}");
        }
        for text in
            ["", ":4222", "host:70000", "ho st:1", "host:x", "::1", "[::1", "[host]:1", "[]:1", "a[::1]:1"]
        {
            assert!(parse_server(text).is_err(), "{text}");
        }
        assert_eq!(parse_server("[::1]:4222").expect("an address"), ("[::1]".to_owned(), 4222));
        assert_eq!(parse_server("[::1]").expect("an address"), ("[::1]".to_owned(), 4222));
        assert_eq!(parse_server("example.org").expect("an address"), ("example.org".to_owned(), 4222));
    }

    /// The server listens where it was told, and nowhere else; workers connect to another address only if one was given.
    #[test]
    fn the_server_listens_where_it_was_told() {
        let folder = tempfile::tempdir().expect("a folder");
        for (n, (listen, address, server, exposed)) in [
            ("127.0.0.1:14222", None, "127.0.0.1:14222", false),
            ("localhost:14222", None, "localhost:14222", false),
            ("[::1]:14222", None, "[::1]:14222", false),
            ("203.0.113.7:4222", None, "203.0.113.7:4222", true),
            ("0.0.0.0:4222", Some("example.org:443"), "example.org:443", true),
            ("[::]:4222", Some("[2001:db8::7]"), "[2001:db8::7]:4222", true),
            ("10.0.0.2:4222", Some("203.0.113.7"), "203.0.113.7:4222", true),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(n.to_string());
            let mut home = Home::init_at(&path, listen, address).expect("made");
            assert_eq!((home.listen(), home.server(), home.is_exposed()), (listen, server, exposed));
            assert_eq!(home.invite("one").expect("invited").server, server);
            let config = std::fs::read_to_string(home.config()).expect("text");
            let told: Vec<&str> = config.lines().filter(|line| line.starts_with("listen")).collect();
            assert_eq!(told, [format!("listen: \"{listen}\"")]);
        }
        for listen in ["0.0.0.0:4222", "[::]:4222"] {
            let error = Home::init(&folder.path().join("x"), listen).unwrap_err();
            assert!(matches!(error, Error::NoAddress { .. }), "{error}");
        }
    }
}
