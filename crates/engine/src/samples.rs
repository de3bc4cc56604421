//! Something to search of every recipe: for self-tests and benchmarks, by name.

use std::sync::LazyLock;

use warpsmith_chain::ethereum::{Contract, Deployment, Factory, SaltRequest};
use warpsmith_chain::{Encoding, KeyType, TYPES};

use crate::space::Subject;

/// One of them.
///
/// See [`samples`].
#[derive(Clone, Copy)]
pub struct Sample {
    /// What `bench` calls it.
    pub name: &'static str,
    /// What is searched.
    pub subject: Subject<'static>,
}

static FIRST_CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(0).expect("a nonce"));

/// A contract of no code, by the deterministic deployment proxy.
static CREATE2: LazyLock<Deployment> = LazyLock::new(|| {
    let factory = Factory::find("arachnid").expect("known");
    Deployment::create2(factory, None, Some([0; 32]), &SaltRequest::default()).expect("any salt will do")
});

/// A contract by the CREATE3 library in some contract.
static CREATE3: LazyLock<Deployment> = LazyLock::new(|| {
    let factory = Factory::find("solmate").expect("known");
    Deployment::create3(factory, Some([0x11; 20]), None, &SaltRequest::default()).expect("any salt will do")
});

/// The same by a factory that hashes the salt first.
static GUARDED: LazyLock<Deployment> = LazyLock::new(|| {
    let factory = Factory::find("createx").expect("known");
    let request = SaltRequest { caller: Some([0x22; 20]), chain_id: Some(1), ..SaltRequest::default() };
    Deployment::create3(factory, None, None, &request).expect("eleven bytes are free")
});

/// What is searched besides the types of addresses: what has a parameter, or no key.
fn others() -> [Sample; 4] {
    [
        Sample { name: "eth-contract", subject: Subject::Key(&*FIRST_CONTRACT) },
        Sample { name: "create2", subject: Subject::Salt(&*CREATE2) },
        Sample { name: "create3", subject: Subject::Salt(&*CREATE3) },
        Sample { name: "create3-guarded", subject: Subject::Salt(&*GUARDED) },
    ]
}

/// One for each program of devices: chains may compute the same of a key and then differ in the text alone, which narrows
/// digests to bits or to ranges. What proves or times programs goes through these.
///
/// ```
/// use warpsmith_engine::{distinct_samples, samples};
///
/// assert!(distinct_samples().len() < samples().len());
/// ```
pub fn distinct_samples() -> Vec<Sample> {
    let mut seen = Vec::new();
    let mut distinct = samples();
    distinct.retain(|sample| {
        let in_ranges = matches!(sample.subject.target().encoding(), Encoding::Base58(_));
        let program = (sample.subject.recipe(), in_ranges);
        let is_new = !seen.contains(&program);
        seen.push(program);
        is_new
    });
    distinct
}

/// All of them: every type of address of every chain, on its main network, and what is searched besides.
///
/// ```
/// use warpsmith_engine::samples;
///
/// assert!(samples().iter().any(|sample| sample.name == "tron"));
/// ```
pub fn samples() -> Vec<Sample> {
    let of_type = |known: &'static KeyType| {
        let target = known.on[0].target.as_ref();
        Sample { name: &known.sample, subject: Subject::Key(target) }
    };
    TYPES.iter().map(of_type).chain(others()).collect()
}
