//! A job as workers get it: what is searched and what is wanted of it, public throughout.
//!
//! It is text with one way to write it, so that its SHA-256 is its name: a worker that has the text a name belongs to does what
//! was asked for, whoever gave it the text. It is data alone: no path, no program, nothing that is executed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use warpsmith_chain::coin::{AddressType, Network};
use warpsmith_chain::cosmos::cosmos;
use warpsmith_chain::ethereum::{self, Contract, Deployment, Factory, SaltRequest};
use warpsmith_chain::{Chain, KeyTarget, SaltMask, SaltTarget};
use warpsmith_engine::{PublicKey, Subject, Wanted, parse_public_key};
use warpsmith_pattern::{Feature, Options, Patterns, Ranking, compile};
use warpsmith_text::json_mistake;

use crate::error::{Error, Result};
use crate::id::JobId;
use crate::scan::{Order, ScanTask};

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Sought {
    /// Addresses of keys.
    Key {
        /// The chain, as the command line names it.
        chain: String,
        /// The type of address, of a coin that has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address_type: Option<String>,
        /// The network of a coin; the main one where it is not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<String>,
        /// The prefix, of a chain of the Cosmos kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
        /// Not the account's own address but that of the contract it creates at this nonce.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nonce: Option<u64>,
    },
    /// Salts of a contract.
    Salt {
        /// `create2` or `create3`.
        with: String,
        /// The factory's name.
        factory: String,
        /// The factory's rule, where somebody wrote it: all of it, so that workers need nothing else.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// What the rule asks for.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        inputs: BTreeMap<String, String>,
        /// The contract that creates, where the factory has no address of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deployer: Option<String>,
        /// The hash of the creation code, or of the proxy's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code_hash: Option<String>,
        /// Who will call the factory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller: Option<String>,
        /// The one chain the result is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chain_id: Option<u64>,
        /// Which bytes of the salt are free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mask: Option<String>,
    },
    /// Keys of a range.
    Range {
        /// Both ends, included.
        range: String,
    },
    /// Keys of a range that is not told.
    Hidden {
        /// Random, so that it says nothing of the range and the targets, which are in the folder.
        tag: String,
    },
}

/// What its text shall look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase", deny_unknown_fields)]
pub enum Liked {
    /// One of these patterns.
    Patterns {
        /// As they were written.
        patterns: Vec<String>,
        /// Whether upper and lower case are the same.
        ignore_case: bool,
        /// Whether letters must have the case of the checksum.
        checksum: bool,
    },
    /// Zero bytes at the start, the more the better.
    Zeros,
    /// This hex digit at the start, the more the better.
    Digit {
        /// 0 to 15.
        digit: u8,
    },
    /// One of these addresses, of keys of a range.
    Targets {
        /// Types of addresses.
        types: Vec<String>,
        /// The addresses.
        addresses: Vec<String>,
    },
    /// Points, which each unit tells.
    Points,
}

/// A job, as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The format: 1.
    pub fleet: u32,
    /// How often the same was asked for before, and ended.
    pub round: u32,
    /// What is searched for.
    pub sought: Sought,
    /// What it shall look like.
    pub liked: Liked,
    /// The owner's public key, where results are for somebody who keeps the private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

impl Descriptor {
    /// The format that is written.
    pub const FORMAT: u32 = 1;
    /// The longest text: some hundred thousand patterns.
    pub const MOST_BYTES: usize = 4 << 20;

    /// The text, which is the same for equal jobs.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain values")
    }

    /// The job with long lists cut short, for display.
    pub fn summary(&self) -> Descriptor {
        const FEW: usize = 8;
        let mut short = self.clone();
        let cut = |list: &mut Vec<String>| {
            if let Some(more) = list.len().checked_sub(FEW).filter(|more| *more > 0) {
                list.truncate(FEW);
                list.push(format!("and {more} more"));
            }
            list.iter_mut().for_each(|text| *text = text.chars().take(100).collect());
        };
        if let Sought::Salt { rule: Some(rule), .. } = &mut short.sought {
            *rule = rule.chars().take(100).collect();
        }
        match &mut short.liked {
            Liked::Patterns { patterns, .. } => cut(patterns),
            Liked::Targets { addresses, .. } => cut(addresses),
            Liked::Zeros | Liked::Digit { .. } | Liked::Points => {}
        }
        short
    }

    /// The job in a few words, for people.
    pub fn title(&self) -> String {
        let name = match &self.sought {
            Sought::Hidden { .. } => return "scan for public keys, hidden from workers".to_owned(),
            Sought::Range { range } => format!("scan of {range} for"),
            Sought::Salt { with, .. } => with.clone(),
            Sought::Key { chain, .. } => chain.clone(),
        };
        let what = match self.summary().liked {
            Liked::Patterns { patterns, .. } => patterns.join(" "),
            Liked::Targets { addresses, .. } => addresses.join(", "),
            Liked::Zeros => "most leading zero bytes".to_owned(),
            Liked::Digit { digit } => format!("longest run of {digit:x}"),
            Liked::Points => String::new(),
        };
        format!("{name} {what}")
    }

    /// The name of the job.
    pub fn id(&self) -> JobId {
        id_of(&self.text())
    }

    /// The job of a text, which must be written as [`Descriptor::text`] writes it.
    pub fn read(text: &str, id: &JobId) -> Result<Descriptor> {
        let bad = |why: String| Error::Usage(format!("job {}: {why}", id.short()));
        if text.len() > Self::MOST_BYTES {
            return Err(bad(format!("its text is longer than {} bytes", Self::MOST_BYTES)));
        }
        if id_of(text) != *id {
            return Err(bad("its text does not have the hash it is named by".to_owned()));
        }
        let read: Descriptor = serde_json::from_str(text).map_err(|error| {
            bad(format!("this version cannot read it: {}", json_mistake(&error.to_string())))
        })?;
        if read.fleet != Self::FORMAT || read.text() != text {
            return Err(bad("it is of another version".to_owned()));
        }
        Ok(read)
    }

    /// What it takes to do it, everything in it checked.
    pub fn open(&self) -> Result<Task> {
        let bad = |why: &dyn fmt::Display| Error::Usage(why.to_string());
        match (&self.sought, &self.liked, &self.split) {
            (Sought::Range { .. }, Liked::Targets { .. }, None) => {
                let order = self.order().ok_or_else(|| bad(&"a scan needs a range and targets"))?;
                return Ok(Task::Scan(ScanTask::open(&order)?));
            }
            (Sought::Hidden { .. }, Liked::Points, None) => return Ok(Task::Scan(ScanTask::hidden())),
            (Sought::Key { .. } | Sought::Salt { .. }, _, _) => {}
            _ => return Err(bad(&"a scan is of a range, for addresses or points")),
        }
        let target = self.sought.target()?;
        let liked = match &self.liked {
            Liked::Patterns { patterns, ignore_case, checksum } => {
                let options = Options { ignore_case: *ignore_case, checksum: *checksum, low_bits: None };
                let patterns = patterns.iter().map(String::as_str);
                let compiled = compile(patterns, target.target(), &options).map_err(|error| bad(&error))?;
                if compiled.is_empty() {
                    return Err(bad(&"a job needs a pattern"));
                }
                Looks::Patterns(Box::new(compiled))
            }
            Liked::Zeros => Looks::Best(Box::new(Ranking::new(Feature::LeadingZeros))),
            Liked::Digit { digit } if *digit < 16 => {
                Looks::Best(Box::new(Ranking::new(Feature::Leading(*digit))))
            }
            Liked::Digit { digit } => return Err(bad(&format!("{digit} is no hex digit"))),
            Liked::Targets { .. } | Liked::Points => {
                return Err(bad(&"a search is for patterns or a score"));
            }
        };
        if matches!(liked, Looks::Best(_)) && !self.sought.has_scores() {
            return Err(bad(&"only Ethereum's addresses have scores"));
        }
        let split = self.split.as_deref().map(parse_public_key).transpose().map_err(|error| bad(&error))?;
        if split.is_some() && matches!(target, AnyTarget::Salt(_)) {
            return Err(bad(&"salts have no key to split"));
        }
        Ok(Task::Search(Box::new(Search { target, liked, split })))
    }

    /// What a scan looks for and where, as far as workers are told.
    pub fn order(&self) -> Option<Order> {
        match (&self.sought, &self.liked) {
            (Sought::Range { range }, Liked::Targets { types, addresses }) => {
                Some(Order { range: range.clone(), types: types.clone(), addresses: addresses.clone() })
            }
            _ => None,
        }
    }

    /// Whether workers are told neither range nor targets.
    pub fn is_hidden(&self) -> bool {
        matches!(self.sought, Sought::Hidden { .. })
    }
}

fn id_of(text: &str) -> JobId {
    JobId(Sha256::digest(["warpsmith fleet job\n", text].concat()).into())
}

/// A target of either kind.
#[derive(Clone)]
pub enum AnyTarget {
    /// Of keys.
    Key(Arc<dyn KeyTarget>),
    /// Of salts.
    Salt(Arc<Deployment>),
}

impl AnyTarget {
    fn target(&self) -> &dyn warpsmith_chain::Target {
        match self {
            AnyTarget::Key(target) => target.as_ref(),
            AnyTarget::Salt(target) => target.as_ref(),
        }
    }
}

impl Sought {
    fn has_scores(&self) -> bool {
        match self {
            Sought::Key { chain, .. } => chain == "eth",
            Sought::Salt { .. } => true,
            Sought::Range { .. } | Sought::Hidden { .. } => false,
        }
    }

    /// The target that is meant.
    pub fn target(&self) -> Result<AnyTarget> {
        let bad = |why: &dyn fmt::Display| Error::Usage(why.to_string());
        match self {
            Sought::Key { chain, address_type, network, prefix, nonce } => {
                let known = Chain::find(chain).ok_or_else(|| bad(&format!("no chain is named {chain:?}")))?;
                let target: Arc<dyn KeyTarget> = match (known.coin, prefix, nonce) {
                    (Some(coin), None, None) => {
                        let name = address_type.as_deref().unwrap_or_default();
                        let address_type = AddressType::find(name)
                            .filter(|known| coin.types.contains(known))
                            .ok_or_else(|| bad(&format!("{chain} has no type of address {name:?}")))?;
                        let network = network.as_deref().map_or(Some(Network::Main), Network::find);
                        let network = network.ok_or_else(|| bad(&"no such network"))?;
                        Arc::new(coin.on(network, address_type))
                    }
                    (None, Some(prefix), None) if chain == "cosmos" => {
                        Arc::new(cosmos(prefix).map_err(|error| bad(&error))?)
                    }
                    (None, None, Some(nonce)) if chain == "eth" => {
                        Arc::new(Contract::new(*nonce).map_err(|error| bad(&error))?)
                    }
                    (None, None, None) if address_type.is_none() && network.is_none() => {
                        let listed =
                            known.addresses.first().ok_or_else(|| bad(&"a chain without addresses"))?;
                        Arc::clone(&listed.target)
                    }
                    _ => return Err(bad(&format!("{chain} does not have what the job says of it"))),
                };
                Ok(AnyTarget::Key(target))
            }
            Sought::Salt { with, factory, rule, inputs, deployer, code_hash, caller, chain_id, mask } => {
                let factory = match rule {
                    Some(text) => Cow::Owned(Factory::parse(text).map_err(|error| bad(&error))?),
                    None => {
                        let known = Factory::find(factory);
                        Cow::Borrowed(known.ok_or_else(|| bad(&format!("no factory is named {factory:?}")))?)
                    }
                };
                let factory = factory.as_ref();
                let address = |name: &str, text: &Option<String>| {
                    let address = text.as_deref().map(ethereum::decode).transpose();
                    address.map_err(|error| bad(&format!("{name}: {error}")))
                };
                let code_hash = code_hash.as_deref().map(ethereum::parse_hash).transpose();
                let code_hash = code_hash.map_err(|error| bad(&error))?;
                let mask = mask.as_deref().map(SaltMask::parse).transpose().map_err(|error| bad(&error))?;
                let (inputs, caller) = (inputs.clone(), address("caller", caller)?);
                let request = SaltRequest { caller, chain_id: *chain_id, mask, inputs };
                let deployer = address("deployer", deployer)?;
                let made = match (with.as_str(), code_hash) {
                    ("create2", code) => Deployment::create2(factory, deployer, code, &request),
                    ("create3", proxy) => Deployment::create3(factory, deployer, proxy, &request),
                    _ => return Err(bad(&"a salt is for create2 or for create3")),
                };
                Ok(AnyTarget::Salt(Arc::new(made?)))
            }
            Sought::Range { .. } | Sought::Hidden { .. } => Err(bad(&"a scan has no target of its own")),
        }
    }
}

enum Looks {
    Patterns(Box<Patterns>),
    Best(Box<Ranking>),
}

/// A job made ready, as far as workers are told of it.
pub enum Task {
    /// A search.
    Search(Box<Search>),
    /// A scan.
    Scan(ScanTask),
}

/// A search made ready: targets found, patterns compiled.
pub struct Search {
    target: AnyTarget,
    liked: Looks,
    /// The owner's public key.
    pub split: Option<PublicKey>,
}

impl Search {
    /// What is searched.
    pub fn subject(&self) -> Subject<'_> {
        match &self.target {
            AnyTarget::Key(target) => Subject::Key(target.as_ref()),
            AnyTarget::Salt(target) => Subject::Salt(target.as_ref()),
        }
    }

    /// What is wanted of it.
    pub fn wanted(&self) -> Wanted<'_> {
        match &self.liked {
            Looks::Patterns(patterns) => Wanted::Patterns(patterns),
            Looks::Best(ranking) => Wanted::best(ranking),
        }
    }

    /// How many salts there are; none for keys, of which there are always more.
    pub fn salts(&self) -> Option<u128> {
        match &self.target {
            AnyTarget::Key(_) => None,
            // Where the mask leaves more than 64 bits free, the counter has all its values.
            AnyTarget::Salt(target) => Some(target.salted().salt.count().map_or(1 << 64, u128::from)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npub(patterns: &[&str]) -> Descriptor {
        Descriptor {
            fleet: Descriptor::FORMAT,
            round: 0,
            sought: Sought::Key {
                chain: "npub".to_owned(),
                address_type: None,
                network: None,
                prefix: None,
                nonce: None,
            },
            liked: Liked::Patterns {
                patterns: patterns.iter().map(|text| (*text).to_owned()).collect(),
                ignore_case: false,
                checksum: false,
            },
            split: None,
        }
    }

    fn search(job: &Descriptor) -> Box<Search> {
        match job.open().expect("possible") {
            Task::Search(search) => search,
            Task::Scan(_) => panic!("no search"),
        }
    }

    /// The text is a contract between versions: a job in somebody's folder must keep its name.
    #[test]
    fn a_job_has_one_text_and_one_name() {
        let job = npub(&["cafe"]);
        assert_eq!(
            job.text(),
            r#"{"fleet":1,"round":0,"sought":{"kind":"key","chain":"npub"},"liked":{"by":"patterns","patterns":["cafe"],"ignore_case":false,"checksum":false}}"#
        );
        let id = job.id();
        assert_eq!(id.to_string(), "85fee42c8d742f9d80bc1aaf295159cda77608a6fcbbdc5b0f73959af8f387bf");
        assert_eq!(Descriptor::read(&job.text(), &id).expect("itself"), job);
        assert_eq!(id.to_string().parse::<JobId>(), Ok(id));
        let other = Descriptor { round: 1, ..job.clone() };
        assert!(Descriptor::read(&other.text(), &id).is_err(), "another text");
        // The same meaning in other words is not the same text.
        let spaced = job.text().replace(":1,", ": 1,");
        assert!(Descriptor::read(&spaced, &id_of(&spaced)).is_err());
        let unknown = job.text().replace(r#""round""#, r#""run":"/bin/sh","round""#);
        assert!(Descriptor::read(&unknown, &id_of(&unknown)).is_err());
    }

    #[test]
    fn jobs_that_cannot_be_done_are_refused_with_the_reason() {
        assert!(npub(&["cafe"]).open().is_ok());
        let why = |job: &Descriptor| job.open().err().expect("refused").to_string();
        assert!(why(&npub(&["bad!"])).contains('!'));
        assert!(why(&npub(&[])).contains("pattern"));
        let key = |chain: &str, address_type: Option<&str>, nonce| Descriptor {
            sought: Sought::Key {
                chain: chain.to_owned(),
                address_type: address_type.map(str::to_owned),
                network: None,
                prefix: None,
                nonce,
            },
            ..npub(&["1a"])
        };
        assert!(key("btc", Some("p2pkh"), None).open().is_ok());
        assert!(why(&key("btc", Some("p2zz"), None)).contains("p2zz"));
        assert!(why(&key("nowhere", None, None)).contains("nowhere"));
        assert!(key("eth", None, Some(7)).open().is_ok());
        assert!(why(&key("eth", None, Some(u64::MAX))).len() > 5);
        assert!(why(&Descriptor { liked: Liked::Zeros, ..npub(&[]) }).contains("scores"));
        let salt = Sought::Salt {
            with: "create3".to_owned(),
            factory: "createx".to_owned(),
            rule: None,
            inputs: BTreeMap::new(),
            deployer: None,
            code_hash: None,
            caller: None,
            chain_id: None,
            mask: None,
        };
        let salts = Descriptor { sought: salt, liked: Liked::Digit { digit: 7 }, ..npub(&[]) };
        assert!(search(&salts).salts() >= Some(1 << 32));
        assert!(why(&Descriptor { liked: Liked::Digit { digit: 16 }, ..salts }).contains("16"));
    }

    /// A rule that somebody wrote goes with the job, so that workers need no file.
    #[test]
    fn a_rule_goes_with_the_job() {
        let rule = "name = \"own\"\ndeployer = \"0x4e59b44847b379578588920cA78FbF26c0B4956C\"\ncreate3 = \"make(bytes32)\"\n\
                    guard = \"keccak256(abi.encode(salt, owner))\"\n[inputs]\nowner = \"address\"\n";
        let job = |rule: &str, owner: &str| {
            let sought = Sought::Salt {
                with: "create3".to_owned(),
                factory: "own".to_owned(),
                rule: Some(rule.to_owned()),
                inputs: BTreeMap::from([("owner".to_owned(), owner.to_owned())]),
                deployer: None,
                code_hash: None,
                caller: None,
                chain_id: None,
                mask: None,
            };
            Descriptor { sought, liked: Liked::Zeros, ..npub(&[]) }
        };
        let owner = "0x00000000219ab540356cBB839Cbe05303d7705Fa";
        let whole = job(rule, owner);
        assert_eq!(Descriptor::read(&whole.text(), &whole.id()).expect("read"), whole);
        let Task::Search(search) = whole.open().expect("possible") else { panic!("a search") };
        let Subject::Salt(target) = search.subject() else { panic!("of salts") };
        let factory = Factory::parse(rule).expect("a rule");
        let inputs = BTreeMap::from([("owner".to_owned(), owner.to_owned())]);
        let request = SaltRequest { inputs, ..SaltRequest::default() };
        let at_home = Deployment::create3(&factory, None, None, &request).expect("possible");
        assert_eq!(target.salted(), at_home.salted());
        let why = |job: &Descriptor| job.open().err().expect("refused").to_string();
        assert!(why(&job(rule, "me")).contains("the input owner: 'me' is no address"));
        assert!(why(&job("name = 5", "me")).contains("line 1, column 8"));
    }
}
